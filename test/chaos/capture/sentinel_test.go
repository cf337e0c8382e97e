package capture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"baton/internal/testsupport"
	"baton/internal/testsupport/nemesis"
)

// sentinelFailover is a fault behind Sentinels alone.
const sentinelFailover = "failover by Sentinel"

// behindSentinels is a master with two replicas.
type behindSentinels struct {
	lab    *lab
	daemon *testsupport.SentinelDaemon

	mu     sync.Mutex
	master *testsupport.RedisDaemon // nil: it is to be asked for
}

func startSentinel(l *lab, opts ...testsupport.RedisOption) store {
	return &behindSentinels{lab: l, daemon: testsupport.StartSentinel(l.t, opts...).Daemon()}
}

func (s *behindSentinels) yaml(db int) string {
	return fmt.Sprintf(`database: %d, sentinel: {master: %s, addresses: ["%s"]}`, db, s.daemon.Name(), strings.Join(s.daemon.Addresses(), `", "`))
}

func (s *behindSentinels) servers() []*testsupport.RedisDaemon { return s.daemon.Data() }

func (s *behindSentinels) masters() ([]*testsupport.RedisDaemon, error) {
	master, err := s.daemon.AwaitMaster(nil)
	return []*testsupport.RedisDaemon{master}, err
}

func (s *behindSentinels) has(*testsupport.RedisDaemon, string) bool { return true }

func (s *behindSentinels) draw(*rand.Rand) (tag string, master *testsupport.RedisDaemon, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.master == nil {
		s.master, err = s.daemon.AwaitMaster(nil)
	}
	return "", s.master, err
}

func (s *behindSentinels) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.master = nil
}

func (s *behindSentinels) traits() []nemesis.Trait {
	return []nemesis.Trait{{Kind: sentinelFailover, Place: "store", Weight: 2, Least: leases(2), Longest: leases(3)}}
}

func (s *behindSentinels) begin(_ nemesis.Fault, master *testsupport.RedisDaemon) (target string, end func()) {
	s.lab.background.Go(func() { // it may be given up, if other faults are beside it
		s.lab.Add("failover: %v", s.daemon.Failover())
	})
	return master.Addr(), func() {}
}

func (s *behindSentinels) unsettle() (settled func()) { return func() {} }

func (s *behindSentinels) whole() error {
	master, err := s.daemon.AwaitMaster(nil)
	if err != nil {
		return err
	}
	for _, r := range s.daemon.Data() {
		if r == master {
			continue
		}
		if err := s.daemon.AwaitReplica(r); err != nil {
			return err
		}
	}
	return nil
}
