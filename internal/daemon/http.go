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

// serving is how page and API are served.
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

// newAnswers is what answers page and API, over the node's connections to Redis and some of its own
// to databases.
func (n *node) newAnswers() *direct.Site {
	return direct.Of(direct.Node{
		Log: n.log, Access: n.access, Own: n.snapshot, Samples: n.samples, Recent: n.recent,
		Reload: n.orderReload, TestNotify: n.testNotify,
	})
}

// testNotify sends a test message, ahead of the messages that wait for the targets.
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

// access is what there is to read, by the configuration that is in force.
func (n *node) access() direct.Access {
	n.mu.Lock()
	defer n.mu.Unlock()
	return direct.Access{Config: n.inventory.Config, Edition: n.edition, Store: n.store, Stores: n.inventory.Stores,
		LockStores: n.lockStores}
}

// orderReload has the node read its configuration again, and returns when it is in force.
func (n *node) orderReload(ctx context.Context, by string) error {
	answer := make(chan error, 1)
	select {
	case n.reloadRequests <- reloadRequest{by: by, answer: answer}:
	case <-ctx.Done():
		return errors.New("the daemon does not take it: it is busy or about to end; see its log")
	}
	select {
	case err := <-answer:
		if err != nil {
			return &operate.Coded{Code: "not_reloaded", Kind: operate.ErrInvalid, Err: err}
		}
		return nil
	case <-ctx.Done():
		return errors.New("the daemon is still at it; see its log")
	}
}

// existing are the listeners that there are.
func existing(listeners ...net.Listener) []net.Listener {
	var found []net.Listener
	for _, l := range listeners {
		if l != nil {
			found = append(found, l)
		}
	}
	return found
}

// secured checks what secures page and API before anything is served; nil: no encryption.
func secured(h config.HTTP) (*certificate.Certificate, error) {
	if err := auth.CheckTokens(h.TokenFile, h.ReadTokenFile); err != nil {
		return nil, err
	}
	return certificate.Open(h)
}

// samples are how far the flushes under all locks were behind, later than since.
func (n *node) samples(ctx context.Context, since time.Time) ([]operate.Sample, error) {
	var of []*work.Samples
	for _, c := range n.all() {
		of = append(of, c.samples)
	}
	return work.Merged(ctx, since, of)
}

// recent are the latest runs of the jobs under all locks.
func (n *node) recent(ctx context.Context) (map[string][]operate.Brief, error) {
	all := map[string][]operate.Brief{}
	var problems []error
	for _, c := range n.all() {
		problems = append(problems, c.recentRuns.Add(ctx, all, c.jobNames()))
	}
	return all, errors.Join(problems...)
}
