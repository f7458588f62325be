"""`trainwright explain`: rule pages, and answers to names, error messages, tracebacks and complaints."""
