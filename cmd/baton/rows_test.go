package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/operate"
)

func TestDeletedRowsAreListedShownAndPutBack(t *testing.T) {
	l := newDeadLab(t)
	configured, err := os.ReadFile(l.env["BATON_CONFIG"])
	if err != nil {
		t.Fatal(err)
	}
	// The catalogue spells the name of the table in its own way.
	keeps := strings.Replace(string(configured), "table: users, key: [id]}", "table: USERS, key: [id], keep_deleted: 7d}", 1)
	l.file("baton.yaml", keeps)
	l.want(cmdline.ExitOK, "no deleted rows are kept\n", "", "rows", "list")
	l.send("HSET", "user:1", "name", "Ann", "age", "30")
	l.send("SADD", "changed:user", "1")
	_, stop := l.daemon()
	l.rows(l.main, "SELECT id, name FROM users", "1|Ann")
	l.send("DEL", "user:1")
	l.send("SADD", "changed:user", "1")
	l.rows(l.main, "SELECT count(*) FROM users", "0")

	var rows []operate.DeletedRow
	listed := l.does("rows", "list", "--job", "users", "--text", "Ann", "-o", "json")
	if err := json.Unmarshal([]byte(listed), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("%+v, %v", rows, err)
	}
	id := fmt.Sprint(rows[0].ID)
	l.fails(cmdline.ExitOK, `main      users  users  missing  {"id":1}`, "rows", "list")
	l.fails(cmdline.ExitOK, `"name": "Ann"`, "rows", "show", id)
	l.fails(cmdline.ExitFailure, "Redis has no key for deleted row "+id+", so job \"users\" would delete the row again", "rows", "undelete", id)
	l.fails(cmdline.ExitFailure, "no such deleted row is kept", "rows", "undelete", "99")
	l.fails(cmdline.ExitUsage, "not the id of a deleted row", "rows", "show", "x")

	l.send("HSET", "user:1", "name", "Ann", "age", "31") // no index tells the job
	l.main.Exec(t, "INSERT INTO users VALUES (1, 'newer', 1)")
	l.fails(cmdline.ExitFailure, "has a row of that key", "rows", "undelete", id)
	l.main.Exec(t, "DELETE FROM users")
	l.fails(cmdline.ExitOK, "deleted row "+id+" is in table users again", "rows", "undelete", id)
	l.rows(l.main, "SELECT id, name, age FROM users", "1|Ann|30")
	l.fails(cmdline.ExitOK, "missing, put back", "rows", "list")
	l.fails(cmdline.ExitOK, "put back  ", "rows", "show", id)
	l.fails(cmdline.ExitFailure, "has a row of that key", "rows", "undelete", id)

	l.send("DEL", "user:1")
	l.send("SADD", "changed:user", "1")
	l.rows(l.main, "SELECT count(*) FROM users", "0")
	stop()
	// The job keeps such rows from now on.
	l.file("baton.yaml", strings.Replace(keeps, `changed: "changed:user"}`, `changed: "changed:user", on_missing: ignore}`, 1))
	if err := json.Unmarshal([]byte(l.does("rows", "list", "-o", "json")), &rows); err != nil || len(rows) != 2 {
		t.Fatalf("%+v, %v", rows, err)
	}
	l.does("rows", "undelete", fmt.Sprint(rows[0].ID))
	l.rows(l.main, "SELECT id FROM users", "1")

	l.main.Exec(t, "DELETE FROM users")
	renamed := strings.Replace(keeps, "name: users", "name: people", 1)
	l.file("baton.yaml", renamed)
	l.fails(cmdline.ExitFailure, "so job \"people\" would delete the row again", "rows", "undelete", id)
	l.file("baton.yaml", strings.Replace(renamed, "table: USERS", "table: sums", 1))
	l.fails(cmdline.ExitOK, "no job in this configuration writes table users, so baton did not look for the key in Redis", "rows", "undelete", id)
}
