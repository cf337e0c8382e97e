package testsupport

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Galera is a cluster of MariaDB servers that all accept writes. When a transaction commits, the cluster checks that the transaction does
// not conflict with transactions of the other servers.
type Galera struct {
	// Members contains the database as each server shows it. Use the Server of a member to kill, freeze or restart it. After a restart a
	// member gets the missed changes from another member.
	Members []*Database

	t    testing.TB
	name string // name of the database
}

// galeraSyncWait makes a statement of the test wait until its member has applied all commits of the other members (1: reads, 4: INSERT).
// The value does not contain 2 (UPDATE and DELETE), because these statements would wait for half a minute while a member is being cut off.
// baton's own connections do not wait.
const galeraSyncWait = "?wsrep_sync_wait=5"

// StartGalera starts a cluster for this test alone, and returns when all members have joined.
func StartGalera(t testing.TB, members int) *Galera {
	t.Helper()
	provider, err := galeraProvider()
	if err != nil {
		t.Fatal(err)
	}
	g := &Galera{t: t}
	ports := make([]int, members)
	var addresses []string
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, loopback(ports[i]))
	}
	begun := false
	for i, port := range ports {
		d, err := runMariaDB("", mariaDB{
			empty: i > 0, // a further member gets its data from the first one
			options: func() []string {
				o := []string{
					"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", "--wsrep-provider=" + provider, "--wsrep-sst-method=rsync",
					"--loose-plugin-wsrep-provider=OFF", // otherwise no member of MariaDB 11 can be isolated
					"--wsrep-cluster-name=" + strconv.Itoa(ports[0]), "--wsrep-node-name=" + strconv.Itoa(i), "--wsrep-node-address=" + loopback(port),
					"--wsrep-cluster-address=gcomm://" + strings.Join(addresses, ","),
					"--wsrep-provider-options=gcache.size=64M;gmcast.listen_addr=tcp://" + loopback(port),
				}
				if i == 0 && !begun {
					o = append(o, "--wsrep-new-cluster")
				}
				return o
			},
			ready: galeraSynced,
		})
		if err != nil {
			t.Fatalf("start member %d of a Galera cluster: %v", i, err)
		}
		begun = true
		own := newServer(t, d.Daemon)
		if i == 0 {
			made, err := d.CreateDatabase(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.name = made.name
			if err := made.db.Close(); err != nil {
				t.Fatal(err)
			}
		}
		db, err := d.reach(g.name, galeraSyncWait)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.db.Close() }) // needs no drop, because the server ends as well
		db.t, db.own = t, &own
		g.Members = append(g.Members, db)
	}
	return g
}

// Cut separates a member from the others in both directions, until Mend is called. The member then has no majority and rejects statements.
func (g *Galera) Cut(member int) { g.t.Helper(); g.isolate(member, 1) }

// Mend ends the effect of Cut, and returns when all members form one cluster again. Mend waits for all members, because the other members
// may have lost their majority too.
func (g *Galera) Mend(member int) {
	g.t.Helper()
	g.isolate(member, 0)
	for _, m := range g.Members {
		g.awaitJoined(m)
	}
}

func (g *Galera) awaitJoined(m *Database) {
	g.t.Helper()
	for deadline := time.Now().Add(readyWithin); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(g.t.Context(), time.Second)
		rows, err := m.Query(ctx, "SHOW STATUS WHERE Variable_name IN ('wsrep_cluster_size', 'wsrep_ready')")
		cancel()
		if err == nil && len(rows) == 2 && rows[0][1] == strconv.Itoa(len(g.Members)) && rows[1][1] == "ON" {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("a member has not come back to its Galera cluster: %v, %v", rows, err)
		}
	}
}

func (g *Galera) isolate(member, yes int) {
	g.t.Helper()
	err := g.Members[member].server.administer(func(admin *sql.DB) error {
		_, err := admin.ExecContext(g.t.Context(), fmt.Sprintf("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=%d'", yes))
		return err
	})
	if err != nil {
		g.t.Fatalf("isolate member %d: %v", member, err)
	}
}

// galeraProvider returns the path of the library that replicates transactions. Debian's package of MariaDB contains it.
func galeraProvider() (string, error) {
	for _, pattern := range []string{"/usr/lib/galera/libgalera_smm.so", "/usr/lib*/galera*/libgalera_smm.so", "/usr/lib/libgalera_smm.so"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.New("libgalera_smm.so is missing; it is in the package galera-4 (make test-deps)")
}

// galeraSynced returns nil if a member belongs to a majority and has all data.
func galeraSynced(ctx context.Context, socket string) error {
	db, err := sql.Open("mysql", mariadbAdmin(socket))
	if err != nil {
		return err
	}
	defer db.Close()
	var name, state string
	if err := db.QueryRowContext(ctx, "SHOW STATUS LIKE 'wsrep_local_state_comment'").Scan(&name, &state); err != nil {
		return err
	}
	if state != "Synced" {
		return fmt.Errorf("the wsrep state of the node is %s", state)
	}
	return nil
}
