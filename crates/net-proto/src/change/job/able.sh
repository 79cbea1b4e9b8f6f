lacks() { echo "banyan lacks $1"; exit 0; }
for program in flock setsid timeout cmp readlink; do command -v "$program" >/dev/null || lacks "$program"; done
[ -r /proc/uptime ] || lacks /proc/uptime
[ -x "@RELOADER@" ] || lacks "@RELOADER@"
