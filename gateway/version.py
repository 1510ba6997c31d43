"""The version of this gateway, in the one place that packaging, protocols and the command line read."""

VERSION = "0.1.0"
