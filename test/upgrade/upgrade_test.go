// Package upgrade tests that nodes of an earlier and of the present version lead one election in turn.
package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

func TestMain(m *testing.M) { testsupport.Main(m) }

// During an upgrade nodes of two versions lead in turn. Each node continues the jobs of the other node, with tables that the newer node has
// migrated. The jobs own the rows that the earlier version wrote.
func TestAnOldAndANewNodeLeadInTurn(t *testing.T) { leadInTurn(t, testsupport.SQLite(t)) }

// TestAnOldAndANewNodeLeadInTurnOnEveryServer is only in the long plan of test/suite.
func TestAnOldAndANewNodeLeadInTurnOnEveryServer(t *testing.T) {
	for _, db := range []*testsupport.Database{testsupport.Postgres(t), testsupport.MariaDB(t)} {
		t.Run(db.Driver, func(t *testing.T) { leadInTurn(t, db) })
	}
}

const jobs = `
- name: views
  schedule: "@every 1s"
  flush:
    from: {type: counters, key: views}
    to: {database: main, table: articles, key: [id]}
    columns: {id: $field, views: {from: $value, op: add}}
- name: sessions
  schedule: "@every 1s"
  flush:
    from: {type: scan, key: "session:<id>", value: hash, vanished: delete, max_pct: 50}
    to: {database: main, table: sessions, key: [id], generation: pass}
- name: carts
  schedule: "@always"
  flush:
    from: {type: capture, key: "cart:<id>"}
    to: {database: main, table: carts, key: [id]}
`

func leadInTurn(t *testing.T, db *testsupport.Database) {
	key := "id VARCHAR(40)" + map[string]string{"mysql": " CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"}[db.Driver] + " PRIMARY KEY"
	db.Exec(t, "CREATE TABLE articles ("+key+", views BIGINT NOT NULL DEFAULT 0)")
	db.Exec(t, "CREATE TABLE sessions ("+key+", turn INT NOT NULL, pass BIGINT)")
	db.Exec(t, "CREATE TABLE carts ("+key+", turn INT NOT NULL)")
	server := testsupport.StartRedis(t, testsupport.RedisAOF())
	conn := server.Client(t)
	nodes := cluster.Start(t, cluster.Options{ // no term ends but by order
		Nodes: 2, TTL: time.Hour, RedisURL: server.URL(), DatabasesYAML: cluster.DatabaseYAML("main", db), JobsYAML: jobs, Program: buildOld(t),
	})
	nodes.AwaitLeader(time.Minute)
	earlier, present := nodes.Nodes[0], nodes.Nodes[1]
	for turn, to := range []*cluster.Node{earlier, present, earlier, present, earlier, present} {
		if turn == 1 {
			present.Upgrade(cluster.Build(t))
		}
		if !to.Leading() {
			if got := nodes.Command("stepdown", "--to", to.ID); got.Code != 0 {
				t.Fatalf("hand over to %s: %+v", to.ID, got)
			}
		}
		gone := fmt.Sprintf("x%d", turn-1)
		conn.Do("HINCRBY", "views", "a", 1)
		for _, key := range []string{"session:", "cart:"} {
			conn.Do("HSET", key+"a", "turn", turn)
			conn.Do("HSET", key+fmt.Sprintf("x%d", turn), "turn", turn)
			conn.Do("DEL", key+gone)
		}
		want := fmt.Sprintf("views [[%d]], sessions [[a %d] [x%d %d]], carts [[a %d] [x%d %d]]", turn+1, turn, turn, turn, turn, turn, turn)
		testsupport.AwaitNoError(t, fmt.Sprintf("the tables of turn %d, when %s leads", turn, to.ID), func() error {
			got := fmt.Sprintf("views %v, sessions %v, carts %v", db.Rows(t, "SELECT views FROM articles"),
				db.Rows(t, "SELECT id, turn FROM sessions ORDER BY id"), db.Rows(t, "SELECT id, turn FROM carts ORDER BY id"))
			if got != want {
				return fmt.Errorf("the tables have %s, want %s", got, want)
			}
			return nil
		})
		if !to.Leading() {
			t.Fatalf("turn %d: %s does not lead", turn, to.ID)
		}
	}
	for _, n := range nodes.Nodes {
		for line := range strings.Lines(n.Log()) {
			if strings.Contains(line, `"level":"error"`) {
				t.Errorf("%s: %s", n.ID, line)
			}
		}
	}
}
