package chaos

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"baton/internal/testsupport"
)

// clustered says whether a Redis Cluster has the data, whose slots move: by MIGRATE, or whole where the servers know
// CLUSTER MIGRATESLOTS. The lock stays in a Redis of its own.
func clustered() bool { return os.Getenv("CHAOS_CLUSTER") != "" }

// startData starts the Cluster. No replica takes over unless it is told to: else writes that were acknowledged would be lost.
func (l *lab) startData() {
	l.data = testsupport.StartCluster(l.t, testsupport.RedisAOF(), testsupport.RedisArgs("--cluster-replica-no-failover", "yes")).Daemon()
	var err error
	if l.whole, err = l.data.MovesWhole(); err != nil {
		l.t.Fatal(err)
	}
	fmt.Printf("a Redis Cluster has the data; its slots move whole: %v\n", l.whole)
}

// dataYAML is the section of the configuration that says where the data is, and the jobs that find it there.
func (l *lab) dataYAML() (stores, jobs string) {
	if l.data == nil {
		return "", jobsYAML
	}
	return fmt.Sprintf("stores:\n  data: {cluster: [\"%s\"]}\n", strings.Join(l.data.Addresses(), `", "`)),
		strings.ReplaceAll(jobsYAML, "from: {", "from: {store: data, ")
}

// dataServers are the addresses of the servers that have the data.
func (l *lab) dataServers() ([]string, error) {
	if l.data == nil {
		return []string{l.redis.Addr()}, nil
	}
	v, err := l.data.View()
	var all []string
	for _, m := range v.Masters() {
		all = append(all, m.Addr())
	}
	return all, err
}

// beginInCluster carries out a fault of the Cluster. A replica that is told to take over gets all writes first, and a master that is
// killed comes back with its data.
func (l *lab) beginInCluster(i int, f fault) {
	tag := l.writers[l.draws.IntN(len(l.writers))].tag // each has a slot of its own
	draw := l.draws.Uint64()
	l.background.Go(func() {
		var err error
		switch f.kind {
		case masterFailover:
			err = l.data.Failover(tag)
		case masterKill:
			var owner *testsupport.RedisDaemon
			if owner, err = l.data.AwaitOwner(tag, nil); err == nil {
				err = owner.Kill()
				time.Sleep(f.lasts)
				err = errors.Join(err, owner.Restart())
			}
		default:
			err = l.moveSlot(tag, draw, f.lasts)
		}
		err = errors.Join(err, l.data.AwaitWhole(), l.data.AwaitAgreement())
		l.At(time.Now(), "%s of %q: %v", f.kind, tag, err)
		l.server(i, err)
	})
}

// moveSlot moves a slot to another master. By MIGRATE, half of its keys are on either side for a while.
func (l *lab) moveSlot(tag string, draw uint64, lasts time.Duration) error {
	from, err := l.data.AwaitOwner(tag, nil)
	if err != nil {
		return err
	}
	v, err := l.data.View()
	if err != nil {
		return err
	}
	masters := v.Masters()
	to := masters[draw%uint64(len(masters))]
	for n := 0; to == from && n < len(masters); n++ {
		to = masters[n]
	}
	if l.whole {
		return l.data.MoveSlot(tag, to)
	}
	m, err := l.data.BeginMove(tag, to)
	if err != nil {
		return err
	}
	const most = 5000
	keys, err := m.Keys(most)
	if err != nil {
		return err
	}
	for n, key := range keys[:len(keys)/2] {
		if err := m.MoveKeys(key); err != nil {
			return err
		}
		if n%32 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	time.Sleep(lasts)
	return m.Finish()
}
