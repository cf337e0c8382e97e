package daemon

import (
	"context"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"

	"baton/internal/status"
)

// notifier sends the state of the daemon to systemd. Without systemd it does nothing.
type notifier struct {
	log *zap.Logger
}

func newNotifier(log *zap.Logger) notifier { return notifier{log: log} }

func (n notifier) send(state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		n.log.Debug("systemd was not notified", zap.String("state", state), zap.Error(err))
	}
}

func (n notifier) ready() { n.send(sd.SdNotifyReady) }

// watchdog notifies systemd's watchdog, at half of the watchdog's interval, while the loops of the process make progress. The loops also
// make progress while Redis is unavailable.
func (n notifier) watchdog(ctx context.Context, health func() status.Health) {
	interval, err := sd.SdWatchdogEnabled(false)
	if err != nil || interval <= 0 {
		return
	}
	ticker := time.NewTicker(interval / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if h := health(); h.Live {
				n.send(sd.SdNotifyWatchdog)
			} else {
				n.log.Error("not pinging the watchdog", zap.String("reason", h.Reason))
			}
		}
	}
}
