"""The memory that a follower has of an AMQP connection, so that another leader can go on with it."""
