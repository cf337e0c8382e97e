package docs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/walk"
)

// A user who does what the page says, and nothing else, has the keys in the table: with the address of the
// PostgreSQL in main.dsn, and with that of a PgBouncer before it.
func TestAdoptToTheLetter(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"", "transaction", "session"} {
		t.Run("pool_mode="+mode, func(t *testing.T) {
			t.Parallel()
			db := testsupport.Postgres(t)
			dsn := db.DSN
			if mode != "" {
				dsn = testsupport.PgBouncer(t, db, mode)
			}
			a := &adopter{T: t, laptop: newLaptop(t, "postgres://me:password@127.0.0.1:5432/shop", dsn), db: db}
			a.run(walk.Block{}, "redis-cli CONFIG SET appendonly yes") // a Redis of the tests keeps nothing on disk
			a.follow(filepath.Join(root, "docs/how-to/adopt.md"))
			// doctor folds its lines.
			if said := strings.Contains(strings.Join(strings.Fields(a.printed), " "), "through a pooler"); said != (mode != "") {
				t.Errorf("that there is a pooler is said: %v, in:\n%s", said, a.printed)
			}
		})
	}
}

type adopter struct {
	*testing.T
	*laptop
	db      *testsupport.Database
	printed string
}

// follow does what each block says, in order.
func (a *adopter) follow(page string) {
	a.Helper()
	blocks, err := walk.Read(page)
	if err != nil {
		a.Fatal(err)
	}
	var before walk.Block
	var done []string
	for _, b := range blocks {
		switch b.Kind {
		case "sql":
			a.db.Exec(a.T, b.Text)
		case "redis-cli":
			a.run(b, "redis-cli <<'END'\n"+b.Text+"END\n")
		case "yaml":
			write(a.T, filepath.Join(a.dir, "baton.yaml"), a.replace.Replace(b.Text))
		case "text": // the page says that it is main.dsn
			write(a.T, filepath.Join(a.dir, "main.dsn"), a.replace.Replace(b.Text))
		case "sh":
			a.run(b, b.Text)
		default:
			a.Fatalf("%s: a block of kind %q", b, b.Kind)
		}
		switch {
		case strings.HasPrefix(b.Text, "baton run"):
			a.await("the backfill", "42 Ada ada@example.com", "43 Grace grace@example.com")
			a.crash()
		case b.Kind == "redis-cli" && before.Kind == "sh":
			a.await("the changes", "42 Ada ada@new.example.com")
		}
		before = b
		done = append(done, b.Kind)
	}
	if want := []string{"redis-cli", "sql", "yaml", "text", "sh", "sh", "redis-cli", "sh", "sh"}; !slices.Equal(done, want) {
		a.Errorf("the page has blocks of the kinds %q, want %q", done, want)
	}
}

func (a *adopter) run(b walk.Block, script string) {
	a.Helper()
	out, err := a.Exec(script)
	a.printed += out
	if err != nil || strings.Contains(out, "ERR ") {
		a.Fatalf("%s: %v\n%s%s", b, err, b.Text, out)
	}
}

// crash stops the node as the page suggests, and starts another.
func (a *adopter) crash() {
	a.Helper()
	if out, err := a.Exec("kill -9 -- -$(cat " + a.pid + ")\nexport BATON_NODE_ID=other\nbaton run"); err != nil {
		a.Fatalf("%v\n%s", err, out)
	}
}

func (a *adopter) await(what string, want ...string) {
	a.Helper()
	testsupport.Await(a.T, what, func() bool {
		var got []string
		for _, r := range a.db.Rows(a.T, "SELECT id, name, email FROM people ORDER BY id") {
			got = append(got, strings.Join(r, " "))
		}
		return slices.Equal(got, want)
	})
}
