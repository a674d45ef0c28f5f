package files

type PyProcess = filesPyProcess
