# Starts a training and does not, or does, say how it ended: wrapper.sh swallows|reports PYTHON HOW
"$2" train.py "$3" 2>/dev/null
code=$?
if [ "$1" = swallows ]; then
	echo "training done"
	exit 0
fi
exit $code
