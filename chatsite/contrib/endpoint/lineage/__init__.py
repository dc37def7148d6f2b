"""What people read of it and say about it: which conversation a client's request goes
on, and why; two conversations joined by hand."""
