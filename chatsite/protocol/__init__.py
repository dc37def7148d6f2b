"""What goes over the wire between processes and browsers: events, errors, the layer."""
