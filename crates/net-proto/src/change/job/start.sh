HOME=/nonexistent timeout -k 1 30 @VTYSH@ -c 'show running-config no-header' </dev/null 2>/dev/null | cmp -s - "$D/old.conf" ||
  { rm -rf "$D"; echo "banyan drift"; exit 0; }
read -r up _ </proc/uptime
setsid sh "$D/job" wait "$((${up%.*} + @SECONDS@))" </dev/null >/dev/null 2>&1 &
n=0
while [ ! -s "$D/pid" ] && [ "$n" -lt 50 ]; do n=$((n + 1)); sleep 0.1 || sleep 1; done
[ -s "$D/pid" ] || { ln -s confirmed "$D/end"; rm -f "$D/old.conf"; lacks "a job that starts"; }
echo "banyan armed"
