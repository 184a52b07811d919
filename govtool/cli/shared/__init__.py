"""What commands share: options and arguments, help, output, formats and exit codes."""
