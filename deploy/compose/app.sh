#!/bin/sh
# An application in a container of its own: it has no network and no key, only
# the folder of the agent's socket. Each second one of three customers checks
# out; a customer may do so twice in ten seconds.
set -u
trap 'exit 0' TERM INT # as process 1 it would not end otherwise

n=0
while :; do
	n=$((n + 1))
	customer=customer-$((n % 3))
	if said=$(rlctl check checkout --key "$customer" --permit); then
		echo "$customer checks out: $said"
	else
		echo "$customer has to wait: $said"
	fi
	sleep "${PAUSE:-1}"
done
