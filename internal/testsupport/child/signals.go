package child

import (
	"os"
	"os/signal"
	"syscall"
)

// InheritNoIgnoredSignals lets the programs that this process starts end by a signal that it
// was itself started to ignore, as under nohup: exec resets a signal that is caught, and leaves
// one that is ignored. This process goes on without minding.
func InheritNoIgnoredSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
