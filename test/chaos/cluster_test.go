package chaos

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"baton/internal/testsupport"
)

// clustered reports whether the data is in a Redis Cluster whose slots move: by MIGRATE, or as a whole if the servers know CLUSTER
// MIGRATESLOTS. The lock stays in a separate Redis.
func clustered() bool { return os.Getenv("CHAOS_CLUSTER") != "" }

// startData starts the Cluster. No replica takes over without an order, because otherwise acknowledged writes would be lost.
func (l *lab) startData() {
	l.data = testsupport.StartCluster(l.t, testsupport.RedisAOF(), testsupport.RedisArgs("--cluster-replica-no-failover", "yes")).Daemon()
	var err error
	if l.whole, err = l.data.MovesWhole(); err != nil {
		l.t.Fatal(err)
	}
	fmt.Printf("a Redis Cluster has the data; its slots move whole: %v\n", l.whole)
}

// dataYAML returns the section of the configuration that names the place of the data, and the jobs that read the data.
func (l *lab) dataYAML() (stores, jobs string) {
	if l.data == nil {
		return "", jobsYAML
	}
	return fmt.Sprintf("stores:\n  data: {cluster: [\"%s\"]}\n", strings.Join(l.data.Addresses(), `", "`)),
		strings.ReplaceAll(jobsYAML, "from: {", "from: {store: data, ")
}

// dataServers returns the addresses of the servers that have the data.
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

// beginInCluster begins a fault of the Cluster. A replica that is ordered to take over first gets all writes, and a killed master
// restarts with its data.
func (l *lab) beginInCluster(i int, f fault) {
	tag := l.writers[l.draws.IntN(len(l.writers))].tag // each writer has its own slot
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

// moveSlot moves a slot to another master. With MIGRATE, half of the slot's keys are on each of the two masters for a while.
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
