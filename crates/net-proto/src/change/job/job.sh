# Brings FRR back to old.conf at a moment of /proc/uptime, unless end says `confirmed`. The link end is made once, by whoever comes first.
D=${0%/*}
umask 077
cd "$D" || exit 1
exec 9>>lock
shown() { HOME=/nonexistent timeout -k 1 30 @VTYSH@ -c 'show running-config no-header' </dev/null 2>/dev/null; }
is_back() { shown >shown.conf && cmp -s old.conf shown.conf; }
reload() {
  cp "$1" frr.conf || return 1
  timeout -k 5 60 @RELOADER@ --rundir "$D" --confdir "$D" "$D/frr.conf" </dev/null >reload.log 2>&1
  s=$?
  rm -f frr.conf
  return "$s"
}
# Takes away the lines of interfaces that the wanted configuration does not name: the reload tries to delete such an interface whole, which FRR 10
# refuses while the kernel has it. The reload leaves passwords of the command line.
empty() {
  foreign=
  while IFS= read -r line; do
    case $line in
    "password "*) foreign=; grep -qxF -e "$line" "$1" || printf 'no password\n' ;;
    "enable password "*) foreign=; grep -qxF -e "$line" "$1" || printf 'no enable password\n' ;;
    "interface "*) foreign=; grep -qxF -e "$line" "$1" || { foreign=yes; printf '%s\n' "$line"; } ;;
    " no "*) [ -z "$foreign" ] || printf '%s\n' "${line# no }" ;;
    " description "*) [ -z "$foreign" ] || printf 'no description\n' ;;
    " "*) [ -z "$foreign" ] || printf 'no%s\n' "$line" ;;
    *) [ -z "$foreign" ] || printf 'exit\n'; foreign= ;;
    esac
  done <shown.conf >frr.conf
  HOME=/nonexistent timeout -k 1 30 @VTYSH@ -f "$D/frr.conf" </dev/null >/dev/null 2>&1
  rm -f frr.conf
}
clear_up() { rm -f old.conf new.conf shown.conf frr.conf reload.log; }
restore() {
  flock 9
  [ -f restored ] && return 0
  if [ ! -f begun ]; then : >restored; clear_up; return 0; fi
  [ -f old.conf ] || return 1
  n=0
  while ! is_back; do
    [ "$n" -lt "$1" ] || return 1
    n=$((n + 1))
    empty old.conf
    reload old.conf
    is_back || sleep 2
  done
  : >restored
  clear_up
}
case $1 in
wait)
  echo $$ >pid
  while [ ! -h end ]; do
    read -r up _ </proc/uptime
    [ "${up%.*}" -lt "$2" ] || break
    sleep 1
  done
  ln -s restore end 2>/dev/null
  if [ "$(readlink end)" = restore ]; then restore 1000; else clear_up; fi ;;
now)
  ln -s restore end 2>/dev/null
  if [ "$(readlink end)" = restore ]; then restore 3 && : >answered; fi ;;
apply)
  flock 9
  if [ -h end ]; then echo over >applied; exit 0; fi
  : >begun
  shown >shown.conf && empty new.conf
  reload new.conf
  echo "$?" >done
  mv done applied ;;
esac
