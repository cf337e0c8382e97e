package daemon

import (
	"context"
	"errors"
	"net"
	"time"

	"baton/internal/certificate"
	"baton/internal/config"
	"baton/internal/daemon/work"
	"baton/internal/operate"
	"baton/internal/operate/direct"
	"baton/internal/status"
	"baton/internal/status/auth"
)

// serving returns the settings with which the node serves the status page and the API.
func (n *node) serving(h config.HTTP, encryption *certificate.Certificate) status.Config {
	c := status.Config{
		Source: n.snapshot, Own: n.own, Health: n.health, Metrics: n.metrics, Logger: n.log.Named("http"), NodeID: n.id,
		Version: n.options.Version, Node: n.answers, Do: n.answers.Do, TokenFile: h.TokenFile, ReadTokenFile: h.ReadTokenFile,
		Hosts: h.Hosts, Proxies: h.Proxies(),
	}
	if encryption != nil {
		c.TLS = encryption.Serve(c.Logger)
	}
	return c
}

// newAnswers returns the Site that answers the requests of the status page and the API. It uses the node's connections to Redis, and its
// own connections to databases.
func (n *node) newAnswers() *direct.Site {
	return direct.Of(direct.Node{
		Log: n.log, Access: n.access, Own: n.snapshot, Samples: n.samples, Recent: n.recent,
		Reload: n.orderReload, TestNotify: n.testNotify,
	})
}

// testNotify sends a test message to the targets, ahead of the messages that already wait to be sent to these targets.
func (n *node) testNotify(ctx context.Context, target, by string) ([]operate.Tested, error) {
	tests, err := n.notifications.Test(ctx, target, by)
	if err != nil {
		return nil, &operate.Coded{Code: "invalid", Kind: operate.ErrInvalid, Err: err}
	}
	all := make([]operate.Tested, len(tests))
	for i, t := range tests {
		all[i] = operate.Tested{Target: t.Target, OK: t.Err == nil}
		if t.Err != nil {
			all[i].Text = t.Err.Error()
		}
	}
	return all, nil
}

// access returns the stores and settings that the answers of the status page and the API may read. They belong to the configuration that
// the node uses now.
func (n *node) access() direct.Access {
	n.mu.Lock()
	defer n.mu.Unlock()
	return direct.Access{Config: n.inventory.Config, Edition: n.edition, Store: n.store, Stores: n.inventory.Stores,
		LockStores: n.lockStores}
}

// orderReload makes the node read its configuration again, and returns when the node uses the new configuration.
func (n *node) orderReload(ctx context.Context, by string) error {
	answer := make(chan error, 1)
	select {
	case n.reloadRequests <- reloadRequest{by: by, answer: answer}:
	case <-ctx.Done():
		return errors.New("the daemon does not accept the reload: it is busy or about to end; see its log")
	}
	select {
	case err := <-answer:
		if err != nil {
			return &operate.Coded{Code: "not_reloaded", Kind: operate.ErrInvalid, Err: err}
		}
		return nil
	case <-ctx.Done():
		return errors.New("the daemon has not finished the reload yet; see its log")
	}
}

// existing returns the listeners that are not nil.
func existing(listeners ...net.Listener) []net.Listener {
	var found []net.Listener
	for _, l := range listeners {
		if l != nil {
			found = append(found, l)
		}
	}
	return found
}

// secured checks the tokens and the certificate of the status page and the API before anything is served. It returns nil if the page and
// the API are not encrypted.
func secured(h config.HTTP) (*certificate.Certificate, error) {
	if err := auth.CheckTokens(h.TokenFile, h.ReadTokenFile); err != nil {
		return nil, err
	}
	return certificate.Open(h)
}

// samples returns the samples of all locks. It leaves out the samples from before the time in the argument since. A sample says how far the
// tables of the flushes were behind Redis at one moment.
func (n *node) samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	var of []*work.Samples
	for _, c := range n.all() {
		of = append(of, c.samples)
	}
	return work.Merged(ctx, since, of)
}

// recent returns the latest runs of all jobs, whatever their lock is.
func (n *node) recent(ctx context.Context) (map[string][]operate.Brief, error) {
	all := map[string][]operate.Brief{}
	var problems []error
	for _, c := range n.all() {
		problems = append(problems, c.recentRuns.Add(ctx, all, c.jobNames()))
	}
	return all, errors.Join(problems...)
}
