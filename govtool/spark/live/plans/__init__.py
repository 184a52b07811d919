"""Plans of an execution, as the job's session has them: operators, relations, commands, functions, figures."""
