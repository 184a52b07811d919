"""Recording inside a job: imports the standard library only, and never breaks the job.

``hook`` watches for sessions, ``process`` has the one recorder, ``listener`` hears of executions, ``catalyst`` and
``physical`` describe them, ``streams`` and ``connect`` cover what a listener does not hear, ``stopping`` waits before
a context stops, ``facts`` describes the job, ``settings`` those of an execution, ``cleaned`` keeps logins out,
``spool`` keeps it all in one file a process. For ``catalyst``, ``trimmed`` keeps of a plan's JSON what lineage needs,
and what the JSON leaves out is fetched by ``relations``, ``commands`` and ``definitions``, over ``scala``. Where
records were requested, ``exact`` writes whole plans, ``stream_batches`` knows those of batches, and ``eager`` keeps
positions of rows, by plans that ``carried`` rewrites. Code here runs in the interpreter of the job, which may be
older than govtool's own: Python 3.8. ``scripted`` alone, with ``places`` and ``statements``, runs under govtool's
own: it is the process of a replay by a script.
"""
