#!/usr/bin/env bash
# Exit code 2 denies the call, and what is on standard error is what the model reads.
input=$(cat)
if grep -qE 'git push[^"]*(--force|-f\b)' <<< "$input"; then
  echo "Never force-push. Open a pull request instead." >&2
  exit 2
fi
