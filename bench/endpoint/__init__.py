"""The endpoint for other clients: does it know which conversation a request goes on?"""
