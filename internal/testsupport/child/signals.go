package child

import (
	"os"
	"os/signal"
	"syscall"
)

// InheritNoIgnoredSignals makes sure that signals end the programs that this process starts, although this process itself was started with
// ignored signals, as under nohup. It works because exec resets a caught signal to the default, but an ignored signal stays ignored. This
// process still ignores the signals.
func InheritNoIgnoredSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
