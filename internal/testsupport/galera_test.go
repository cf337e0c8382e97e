package testsupport

import (
	"context"
	"testing"
	"time"
)

// If one member has committed a row, all members have the row, also a member that was cut off or killed at that time.
func TestAGaleraClusterHasOneState(t *testing.T) {
	t.Parallel()
	g := StartGalera(t, 3)
	g.Members[0].Exec(t, "CREATE TABLE fence (job VARCHAR(9) PRIMARY KEY, epoch BIGINT)")
	g.Members[1].Exec(t, "INSERT INTO fence VALUES ('a', 41)")
	epoch := func(member int) string {
		rows := g.Members[member].Rows(t, "SELECT epoch FROM fence")
		return rows[0][0]
	}
	if got := epoch(2); got != "41" {
		t.Errorf("member 2 has %s", got)
	}
	g.Cut(2)
	g.Members[0].Exec(t, "UPDATE fence SET epoch = 42")
	await := func(what string, reached func(rows [][]string, err error) bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			rows, err := g.Members[2].Query(ctx, "SELECT epoch FROM fence")
			cancel()
			if reached(rows, err) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: member 2 answers %v, %v", what, rows, err)
			}
		}
	}
	await("cut off", func(_ [][]string, err error) bool { return err != nil })
	g.Mend(2)
	await("back", func(rows [][]string, err error) bool { return err == nil && rows[0][0] == "42" })
	g.Members[1].Server().Kill()
	g.Members[0].Exec(t, "UPDATE fence SET epoch = 43")
	g.Members[1].Server().Restart()
	if got := epoch(1); got != "43" {
		t.Errorf("member 1, started again, has %s", got)
	}
}
