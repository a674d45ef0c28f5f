# Starts a training and does not, or does, say how it ended: wrapper.sh swallows|reports PYTHON HOW
if [ "$1" = swallows ]; then
	"$2" train.py "$3" 2>/dev/null
	echo "training done"
	exit 0
fi
"$2" train.py "$3" 2>/dev/null # the last command's exit code is the script's
