package cow

type PyProcess = cowPyProcess
