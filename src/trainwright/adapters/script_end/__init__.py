"""What an exception that ended a script shows of its cause: names, arguments, data sets and parameters, whatever the framework."""
