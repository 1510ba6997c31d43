"""Connections of STOMP clients that a node of a cluster passes to the leader, and to the next one when that is lost."""
