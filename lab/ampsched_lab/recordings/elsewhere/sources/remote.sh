#!/bin/sh
shift
exec "$@"
