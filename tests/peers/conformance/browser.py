#!/usr/bin/env python3
"""Stands in for a person's browser: opens the URL it is given and follows redirects, as `$BROWSER` does."""
import sys
import urllib.error
import urllib.request

try:
    urllib.request.urlopen(sys.argv[1], timeout=10).read()
except urllib.error.HTTPError as error:
    print(f"browser: {error.code} at {error.url}", file=sys.stderr)
