package crash_test

import (
	"database/sql/driver"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modernc.org/sqlite"
)

// stopRow is the row at which a leader is frozen. It is the last row. Batches are written in the order of their keys, so all earlier
// batches are committed.
const stopRow = peopleRows - 1

// makeStops makes it possible to freeze a leader in the transaction that writes the last row. The test
// locks that row on a server. It cannot lock a row of a file, so there the process that writes it stops itself.
func (p *pair) makeStops() {
	p.t.Helper()
	for _, table := range []string{"people", "counts", captured} {
		column := "name"
		if table == "counts" {
			column = "n"
		}
		p.db.Exec(p.t, fmt.Sprintf("INSERT INTO %s (id, %s) VALUES (%d, 0)", table, column, stopRow))
		if !p.hasServer() {
			p.db.Exec(p.t, fmt.Sprintf("CREATE TRIGGER stop_%[1]s BEFORE INSERT ON %[1]s WHEN NEW.id = %[2]d BEGIN SELECT %[3]s('%[1]s'); END",
				table, stopRow, stopFunction))
		}
	}
}

// stopFunction is an SQL function of a node's process. If the test has requested this, the function stops the process until the test
// continues the process.
const stopFunction = "stop_if_asked"

// These are the files that request the stop for a table, and the files that name the node that has stopped.
func askFile(dir, table string) string { return filepath.Join(dir, "stop."+table) }

const stoppedFile = "stopped."

// registerStop registers the function for the node whose configuration is at path.
func registerStop(path string) error {
	dir, node := filepath.Dir(path), strings.TrimSuffix(filepath.Base(path), ".yaml")
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	return sqlite.RegisterScalarFunction(stopFunction, 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		table, _ := args[0].(string)
		if asked := os.Rename(askFile(dir, table), filepath.Join(dir, stoppedFile+node)) == nil; !asked {
			return nil, nil
		}
		err := syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		if err == nil {
			<-goOn // the signal may first reach another thread
		}
		return nil, err
	})
}

// askToStop prevents the next flush from completing a table until release is called.
func (p *pair) askToStop(table string) (release func()) {
	p.t.Helper()
	if p.hasServer() {
		return p.db.Hold(p.t, fmt.Sprintf("UPDATE %s SET id = id WHERE id = %d", table, stopRow))
	}
	if err := os.WriteFile(askFile(p.dir, table), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	return func() {
		_ = os.Remove(askFile(p.dir, table)) // in most cases a node has removed the file
	}
}

// atStop returns the node that is inside the transaction that writes the last row, or "".
func (p *pair) atStop(table string) string {
	p.t.Helper()
	if !p.hasServer() {
		for id := range p.nodes {
			if os.Remove(filepath.Join(p.dir, stoppedFile+id)) == nil {
				return id
			}
		}
		return ""
	}
	waits := "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%%%s%%'"
	if p.db.Driver == "mysql" {
		waits = "SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p " +
			"ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE() AND p.info LIKE '%%%s%%'"
	}
	if p.db.Rows(p.t, fmt.Sprintf(waits, table))[0][0] == "0" {
		return ""
	}
	return p.leader()
}

// freezeInside causes a flush of table, and freezes the leader inside the flush's last transaction.
func (p *pair) freezeInside(round int, table string) (leader string) {
	p.t.Helper()
	for try, deadline := 0, time.Now().Add(8*time.Minute); ; try++ {
		before := p.total()
		release := p.askToStop(table)
		p.write(fmt.Sprintf("round %d, try %d", round, try), 1)
		// InnoDB refreshes innodb_trx only when no client has read it for 100 ms.
		p.awaitEvery(200*time.Millisecond, "a flush that has come to the last row", func() bool {
			leader = p.atStop(table)
			return leader != ""
		})
		if err := p.nodes[leader].Freeze(); err != nil {
			p.t.Fatal(err)
		}
		still := p.leader() == leader
		// A capture writes its keys in no order, so the last row may be in its first transaction.
		if still && table != captured && !p.partial(table, before) {
			p.t.Fatalf("%s was frozen when nothing or all of %s was committed", leader, table)
		}
		release()
		if still {
			return leader
		}
		// The lease ran out by itself, because the machine is busy.
		p.nodes[leader].signal(syscall.SIGCONT)
		if time.Now().After(deadline) {
			p.t.Fatalf("no leader could be frozen in the middle of flushing %s", table)
		}
		p.drained()
	}
}

// partial reports whether the table has some of its new rows, but not all of them.
func (p *pair) partial(table string, before int) bool {
	p.t.Helper()
	query, from, to := "SELECT count(*) FROM "+table+" WHERE name = '"+p.names["0"]+"'", 0, peopleRows
	if table == "counts" {
		query, from, to = "SELECT sum(n) FROM counts", before, p.total()
	}
	n, err := strconv.Atoi(p.db.Rows(p.t, query)[0][0])
	if err != nil {
		p.t.Fatal(err)
	}
	return from < n && n < to
}
