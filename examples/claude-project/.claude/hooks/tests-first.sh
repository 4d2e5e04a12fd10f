#!/usr/bin/env bash
# Not done before the tests ran; but only once, or it would never end.
grep -q '"stop_hook_active":true' && exit 0
echo "Run the tests before you stop." >&2
exit 2
