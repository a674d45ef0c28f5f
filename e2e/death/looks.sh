# Starts a training, looks how it ended, says so, and ends well: looks.sh PYTHON HOW
"$1" train.py "$2" 2>/dev/null
code=$?
if [ $code -ne 0 ]; then
	echo "training failed with $code, going on without it"
fi
exit 0
