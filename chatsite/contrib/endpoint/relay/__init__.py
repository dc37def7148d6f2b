"""A request of a client on its way: to the provider as it came, back as it comes, and
read on the side."""
