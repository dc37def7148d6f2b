"""What streaming a reply costs and how late its words come, here and elsewhere."""
