place="$HOME/.banyan"
[ -e "$place" ] || place=$HOME
[ -d "$place" ] && [ -w "$place" ] || lacks "a home to write to"
echo "banyan able"
