#!/bin/sh
if grep -q 'git push'; then
  echo 'No pushes before Friday.' >&2
  exit 2
fi
