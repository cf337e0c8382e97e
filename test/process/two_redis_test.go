package process

import (
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// Two installations share a database, but not their Redis, and their lock keys have the same name. Each Redis has its own leader. The log,
// the status and the events of the losing leader say so, and what to do.
func TestTwoElectionsOfOneLockKeyOnOneDatabaseAreNamed(t *testing.T) {
	t.Parallel()
	db := testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER NOT NULL)")
	sections := "databases:\n  " + cluster.DatabaseYAML("main", db) + "jobs:\n- name: views\n  schedule: \"@every 1s\"\n  flush:\n" +
		"    from: {type: counters, key: views}\n    to: {database: main, table: articles, key: [id]}\n" +
		"    columns: {id: $field, views: {from: $value, op: add}}\n"
	const named = "another leader writes to this database"
	var nodes []*cluster.Node
	var shops []testsupport.Client
	for _, id := range []string{"a", "b"} {
		server := testsupport.StartRedis(t)
		shops = append(shops, server.Client(t))
		nodes = append(nodes, cluster.StartNode(t, nodeFile(t, server.URL(), id, "", sections), nil))
	}
	await := func(where string, named func(*cluster.Node) bool) {
		testsupport.Await(t, where+" of a node to name the other election", func() bool {
			found := false
			for i, n := range nodes {
				shops[i].Do("HINCRBY", "views", 1, 1) // a job without changes does not check its fence
				found = found || named(n)
			}
			return found
		})
	}
	await("the log", func(n *cluster.Node) bool { return strings.Contains(n.Log(), named) })
	await("the status", func(n *cluster.Node) bool {
		s, ok := n.Status()
		return ok && len(s.Jobs) == 1 && s.Jobs[0].LastRun != nil && strings.Contains(s.Jobs[0].LastRun.Error, named)
	})
}
