package daemon

import (
	"context"
	"os"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/status"
)

// AwaitLockKey waits until the configuration names a lock key, and returns it. The packages install a configuration without a lock key, so
// that the host campaigns for no lock until its operator has chosen a key. The function load reads the configuration again on each reload.
// AwaitLockKey returns an error only if ctx ends. The daemon reports to systemd that it is ready, and that it waits for the key.
func AwaitLockKey(
	ctx context.Context, log *zap.Logger, load func() (config.Config, error), reload <-chan os.Signal, lacks error,
) (config.Config, error) {
	n := newNotifier(log)
	n.ready()
	n.send("STATUS=waiting for election.lock_key in the configuration; then: systemctl restart baton")
	log.Warn("waiting for a lock key: this daemon does nothing yet; write election.lock_key into the configuration, then restart or "+
		"reload the daemon", zap.Error(lacks))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go n.watchdog(ctx, func() status.Health { return status.Health{Live: true} })
	for {
		select {
		case <-ctx.Done():
			return config.Config{}, context.Cause(ctx)
		case <-reload:
		}
		c, err := load()
		if err == nil {
			log.Info("the configuration has a lock key now", zap.String("lock_key", c.Election.LockKey))
			return c, nil
		}
		log.Warn("still waiting for a configuration that can be used", zap.Error(err))
	}
}
