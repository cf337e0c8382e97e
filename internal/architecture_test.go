// Package internal_test tests the structure of the program: which package may import which packages, and which work only one package may
// do.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rule lists the packages of this module that one package may import, with the reason why it may import no others.
type rule struct {
	pkg    string // relative to the module; the rule also covers the packages below it
	may    []string
	reason string
}

// The most specific rule counts. A package without a rule is an error, because its imports must be decided before it grows.
var rules = []rule{
	{"cmd", []string{"cmd/baton/internal/cmdline", "cmd/baton/internal/deadcmd", "cmd/baton/internal/jobcmd", "cmd/baton/internal/show",
		"internal/daemon", "internal/daemon/adminsocket", "internal/config", "internal/demo", "internal/command", "internal/crash", "internal/diagnose", "internal/doctor",
		"internal/lockcmd", "internal/operate", "internal/operate/direct", "internal/profiling", "internal/text", "internal/trace", "configs"},
		"a command turns arguments into one call, of daemon, or of doctor, lockcmd and crash where no daemon runs, and its result into an exit code; demo is a program of its own that runs daemons as child processes, and the warden of a command is one, too; trace names its variables for the help"},
	{"clients", nil, "applications copy it: one file, and its Redis client"},
	{"cmd/baton/internal/cmdline", []string{"cmd/baton/internal/show", "internal/config", "internal/daemon/adminsocket", "internal/daemon/tasks", "internal/diagnose", "internal/lockcmd",
		"internal/operate", "internal/operate/direct", "internal/text"},
		"it reads the configuration that flags name, and says whom to ask: what is asked is each command's own; it completes names of what there is"},
	{"cmd/baton/internal/deadcmd", []string{"cmd/baton/internal/cmdline", "cmd/baton/internal/show", "internal/diagnose", "internal/operate", "internal/text"},
		"dead letters are asked for by operate alone, at a node or in the databases"},
	{"cmd/baton/internal/jobcmd", []string{"cmd/baton/internal/cmdline", "cmd/baton/internal/show", "internal/diagnose", "internal/operate", "internal/operate/direct", "internal/text"},
		"orders for jobs are operate's; a preview and the next slots are direct's, as they need no node"},
	{"cmd/baton/internal/show", []string{"internal/text"}, "how something is printed does not depend on what it is"},
	{"configs", nil, "the shipped example is data"},
	{"internal/alert", []string{"internal/config", "internal/diagnose", "internal/elector", "internal/job", "internal/job/schedule", "internal/notify",
		"internal/notify/service", "internal/redisledger", "internal/redislock", "internal/secret", "internal/text"},
		"what is worth telling is decided from what ends, and from how jobs and elections stand: it reads them, and changes nothing"},
	{"internal/balance", nil, "which node should lead a lock is decided from values: where they were read is the caller's business"},
	{"internal/certificate", []string{"internal/config"}, "a pair of files is served the same, whatever is behind it"},
	{"internal/command/orphans", nil, "whoever starts a child process tells PID 1 so: it needs nothing of what the child is for"},
	{"internal/command", []string{"internal/command/orphans", "internal/command/warden"}, "it runs commands for a lock and for jobs alike: neither's rules are its business"},
	{"internal/command/warden", nil, "a process of its own that must not wait for what others initialise"},
	{"internal/command/held", nil, "who holds a lock and what runs under it are told in the same words, and neither knows the other"},
	{"internal/config/shape", nil, "how deep and wide a file is needs no meaning of it"},
	{"internal/config", []string{"internal/config/shape", "internal/flush/source/spec", "internal/notify/service", "internal/text"}, "a configuration is checked without any server or package that it configures"},
	{"internal/crash", []string{"internal/config", "internal/daemon/site", "internal/elector", "internal/redislock"}, "what runs after a daemon needs its lease file and its lock, and nothing that it ran"},
	{"internal/daemon", []string{"internal/alert", "internal/balance", "internal/certificate", "internal/command", "internal/command/orphans", "internal/config", "internal/crash",
		"internal/daemon/abdication", "internal/daemon/adminsocket", "internal/daemon/epochs", "internal/daemon/identity", "internal/daemon/inventory",
		"internal/daemon/outage", "internal/daemon/site", "internal/daemon/storehealth", "internal/daemon/tasks", "internal/daemon/work", "internal/diagnose", "internal/doctor", "internal/elector",
		"internal/flush/source/staging", "internal/heartbeat", "internal/job", "internal/job/schedule", "internal/operate", "internal/operate/direct",
		"internal/redisconn", "internal/redisledger", "internal/redislock", "internal/redislock/script", "internal/status", "internal/status/auth", "internal/status/metrics", "internal/text", "internal/trace"},
		"it wires what a running node is made of, and decides nothing: of flushes, sources and databases it knows the tasks alone"},
	{"internal/daemon/abdication", []string{"internal/config", "internal/daemon/site", "internal/elector", "internal/operate/direct", "internal/text"},
		"whether a leader lets others try depends on its databases and the election: the jobs are not its business"},
	{"internal/daemon/adminsocket", []string{"internal/config"}, "who may connect is decided by its file alone: what is asked there is not its business"},
	{"internal/daemon/epochs", []string{"internal/config", "internal/daemon/site", "internal/redislock"}, "what a host remembers of terms outlives the process: it is read before there is an election"},
	{"internal/daemon/identity", []string{"internal/daemon/site", "internal/redislock"}, "who a process is it learns from the list of nodes alone"},
	{"internal/daemon/inventory", []string{"internal/config", "internal/daemon/abdication", "internal/daemon/site", "internal/daemon/tasks", "internal/daemon/work",
		"internal/flush/sql", "internal/redisconn"},
		"what a reload keeps is decided from two configurations: no election and no term is asked"},
	{"internal/daemon/outage", []string{"internal/job", "internal/redisconn"}, "it reports for elections and jobs alike, and changes nothing"},
	{"internal/daemon/site", []string{"internal/config", "internal/elector", "internal/flush", "internal/flush/sql", "internal/flush/sql/open", "internal/heartbeat",
		"internal/id", "internal/nodelock", "internal/redisconn", "internal/redisledger", "internal/redislock", "internal/redislock/script", "internal/secret"},
		"it opens what the configuration names, for the daemon and for commands alike: what is done there is not its business"},
	{"internal/daemon/storehealth", []string{"internal/daemon/outage", "internal/daemon/site", "internal/diagnose", "internal/redisconn"},
		"whether a store answers is asked beside the jobs, and no election depends on it"},
	{"internal/daemon/tasks", []string{"internal/flush/source/capture", "internal/flush/source/existing", "internal/flush/source/spec", "internal/flush/verify", "internal/config", "internal/daemon/site", "internal/flush", "internal/flush/mapping", "internal/flush/source", "internal/flush/source/staging",
		"internal/job", "internal/job/plan", "internal/job/schedule", "internal/redisconn"},
		"a job of the configuration becomes a flush and a schedule for whoever runs it or looks at it: no term, no lock"},
	{"internal/daemon/work", []string{"internal/flush/source/capture", "internal/flush/verify", "internal/alert", "internal/command", "internal/config", "internal/daemon/outage", "internal/daemon/site",
		"internal/daemon/storehealth", "internal/daemon/tasks", "internal/diagnose", "internal/doctor", "internal/elector", "internal/flush", "internal/flush/source/staging", "internal/job",
		"internal/job/schedule", "internal/operate", "internal/operate/direct", "internal/program", "internal/redisconn", "internal/redisledger",
		"internal/secret", "internal/status/metrics", "internal/text", "internal/trace"},
		"the jobs of a term, and what goes on beside them: of the election it knows the term, and nothing of how it was won"},
	{"internal/demo", []string{"internal/config", "internal/flush/source/spec"}, "an auditor that shared code with the flush would share its mistakes"},
	{"internal/diagnose", []string{"internal/elector", "internal/job", "internal/text"}, "a verdict is a function of values: who shows it and where they were read must not matter"},
	{"internal/doctor", []string{"internal/certificate", "internal/command", "internal/command/orphans", "internal/config", "internal/daemon/site", "internal/daemon/tasks", "internal/finding",
		"internal/flush", "internal/flush/mapping", "internal/flush/row", "internal/flush/source", "internal/flush/source/staging", "internal/flush/sql",
		"internal/job", "internal/job/schedule", "internal/program", "internal/redisconn", "internal/redisledger", "internal/redislock", "internal/secret", "internal/status/auth"},
		"it asks whatever a job will ask, with the same code, and changes nothing; no term and no daemon is needed"},
	{"internal/elector", []string{"internal/heartbeat"}, "the election is decided without knowing any store: adapters point inward"},
	{"internal/finding", nil, "findings have one form for every server, and a flush needs none"},
	{"internal/flush", []string{"internal/flush/mapping", "internal/flush/row"}, "leadership reaches a flush as a context and an epoch, a store through its ports"},
	{"internal/flush/flushtest", []string{"internal/flush", "internal/flush/row"}, "a conformance suite exercises the ports of the domain"},
	{"internal/flush/mapping", []string{"internal/flush/row"}, "what a record becomes depends on the record and the table alone"},
	{"internal/flush/row", nil, "values, records and plans are what sources, flushes and databases have in common"},
	{"internal/flush/sql", []string{"internal/finding", "internal/flush", "internal/flush/row", "internal/text"}, "a transaction is written once; the differences of databases are in a Dialect, whose driver it does not know"},
	{"internal/flush/sql/mysql", []string{"internal/finding", "internal/flush", "internal/flush/row", "internal/flush/sql", "internal/flush/sql/stdsql", "internal/text"}, "a dialect knows no other one"},
	{"internal/flush/sql/open", []string{"internal/flush/sql", "internal/flush/sql/mysql", "internal/flush/sql/postgres", "internal/flush/sql/sqlite"}, "it knows every dialect by its name, and nothing else"},
	{"internal/flush/sql/postgres", []string{"internal/finding", "internal/flush", "internal/flush/row", "internal/flush/sql", "internal/text"}, "a dialect knows no other one, and this one does not use database/sql"},
	{"internal/flush/sql/sqlite", []string{"internal/finding", "internal/flush", "internal/flush/row", "internal/flush/sql", "internal/flush/sql/stdsql"}, "a dialect knows no other one"},
	{"internal/flush/sql/sqltest", []string{"internal/flush", "internal/flush/sql"}, "it decorates any dialect for tests"},
	{"internal/flush/sql/stdsql", []string{"internal/flush/row", "internal/flush/sql"}, "it is shared by the dialects that use database/sql, and knows none of them"},
	{"internal/flush/source", []string{"internal/flush", "internal/flush/row", "internal/flush/source/capture", "internal/flush/source/idlist", "internal/flush/source/object", "internal/flush/source/paging", "internal/flush/source/parts", "internal/flush/source/place", "internal/flush/source/spec", "internal/flush/source/staging", "internal/redisconn"}, "it implements a port of flush, which never sees it, and knows neither lock nor ledger"},
	{"internal/flush/source/idlist", []string{"internal/flush/row"}, "order, lane and part of an id are the same at every read and on every server"},
	{"internal/flush/source/parts", []string{"internal/flush/source/idlist"}, "which part a field is in depends on the field and on what is kept beside the stage"},
	{"internal/flush/source/capture", []string{"internal/flush", "internal/flush/row", "internal/redisconn", "internal/redisconn/follow", "internal/redisconn/follow/keys"}, "which keys have changed is the same whatever their values become: how those are read it is given"},
	{"internal/flush/source/object", []string{"internal/flush/row"}, "what a text says depends on nothing else"},
	{"internal/flush/source/paging", []string{"internal/flush/row", "internal/redisconn"}, "what fits into a page is the same for every source"},
	{"internal/flush/source/place", []string{"internal/redisconn"}, "whether something went unread follows from what a stream says of itself"},
	{"internal/flush/source/staging", []string{"internal/flush", "internal/redisconn"}, "a stage is found by its key alone, also when its source is gone"},
	{"internal/flush/source/spec", nil, "the settings of a source are known without the source"},
	{"internal/flush/source/existing", []string{"internal/flush", "internal/flush/row", "internal/flush/source", "internal/flush/source/spec", "internal/flush/verify", "internal/redisconn"},
		"it implements a port of verify, and reads what a source reads, without its stage"},
	{"internal/flush/verify", []string{"internal/flush", "internal/flush/mapping", "internal/flush/row"}, "what differs is decided from records and rows: it knows neither Redis nor SQL"},
	{"internal/heartbeat", nil, "the trust window is the root of all promises: it depends on nothing but the clock"},
	{"internal/job", []string{"internal/job/plan", "internal/job/schedule"}, "leadership reaches jobs as a context and an epoch, a store through their ports"},
	{"internal/job/jobtest", []string{"internal/job"}, "a conformance suite exercises a port of the domain"},
	{"internal/job/plan", []string{"internal/job/schedule"}, "a plan depends on policy, schedule and time, not on what a run does or where it is recorded"},
	{"internal/job/schedule", nil, "the slots of a schedule are a function of the time alone: every node must compute the same"},
	{"internal/lockcmd", []string{"internal/command", "internal/command/held", "internal/config", "internal/daemon/site", "internal/elector", "internal/heartbeat",
		"internal/redisconn", "internal/redislock", "internal/text"},
		"a command under a lock is an election of one term: it needs neither jobs nor a daemon"},
	{"internal/id", nil, "an identity depends on nothing but chance"},
	{"internal/nodelock", []string{"internal/elector", "internal/heartbeat", "internal/id", "internal/quorum", "internal/redisconn", "internal/redislock"},
		"one lock of a node is made of stores that its callers open: daemon and library make the same one"},
	{"internal/notify", []string{"internal/command/orphans", "internal/notify/service"}, "it delivers what it is handed: what is worth telling, and of whom, is alert's to know"},
	{"internal/notify/service", []string{"internal/text"}, "what a chat service wants is known without the queue of what is sent to it"},
	{"internal/operate", []string{"internal/diagnose", "internal/text"}, "an order, what it came to and what is asked are the same for commands, API and page; a client of the API needs no server's package"},
	{"internal/operate/direct", []string{"internal/config", "internal/daemon/site", "internal/daemon/tasks", "internal/diagnose", "internal/elector", "internal/flush", "internal/flush/mapping",
		"internal/flush/row", "internal/flush/source/spec", "internal/flush/source/staging", "internal/flush/sql", "internal/flush/verify", "internal/job", "internal/job/schedule", "internal/operate", "internal/operate/direct/progress",
		"internal/redisconn", "internal/redisledger", "internal/redislock", "internal/text"},
		"it asks Redis and the databases, and leaves orders there: what carries them out in a term it does not see"},
	{"internal/profiling", nil, "the profiles of a process are Go's: nothing of ours is in them"},
	{"internal/program", []string{"internal/command", "internal/command/held", "internal/config", "internal/job", "internal/secret"},
		"the command of a job is run under a term, of which it knows how long it lasts: neither its lock nor where its output is kept"},
	{"internal/quorum", []string{"internal/elector"}, "a Lock made of Locks; which store they are in is not its business"},
	{"internal/redisconn/redistest", []string{"internal/redisconn", "internal/testsupport"}, "it decorates the connections of anything for tests, and connects to a Redis of a test as a user may"},
	{"internal/redisconn/follow/keys", []string{"internal/redisconn", "internal/redisconn/follow"}, "what a command changes depends on the command and the server's list alone"},
	{"internal/redisconn/follow", []string{"internal/redisconn"}, "the replica's side of the protocol is the same, whatever it is followed for"},
	{"internal/redisconn/headers", nil, "whether a length is believable depends on nothing else"},
	{"internal/redisconn", []string{"internal/finding", "internal/redisconn/headers", "internal/text"}, "connections, and the checks of a server, do not depend on the data; each adapter translates errors for its own port"},
	{"internal/redisledger", []string{"internal/job", "internal/redisconn", "internal/redislock/script"}, "the job's adapter knows the port that it implements; of the lock it asks only who holds it"},
	{"internal/redislock", []string{"internal/elector", "internal/heartbeat", "internal/redisconn", "internal/redislock/script"}, "the elector's adapter knows the port that it implements, and neither jobs nor flushes"},
	{"internal/redislock/script", []string{"internal/redisconn"}, "it has the keys and Lua that lock and ledger share; redisconn decides which keys share a slot"},
	{"internal/secret", []string{"internal/config", "internal/text"}, "what is secret is the same for whatever might tell it"},
	{"internal/status", []string{"internal/operate", "internal/status/api", "internal/status/auth", "internal/status/metrics", "internal/status/page", "internal/status/state", "internal/status/web", "internal/text"},
		"listeners, and what is served on them: it knows the rooms below, and no state"},
	{"internal/status/api", []string{"internal/diagnose", "internal/operate", "internal/status/auth", "internal/status/state", "internal/status/web", "internal/text"},
		"programs get what they ask for as it is: a page's words are not in it"},
	{"internal/status/auth", []string{"internal/operate", "internal/status/web", "internal/text"}, "who may see and order does not depend on what there is to see"},
	{"internal/status/metrics", []string{"internal/diagnose", "internal/status/web"}, "metrics come from memory: a state that is read from servers could keep them waiting"},
	{"internal/status/page", []string{"internal/diagnose", "internal/operate", "internal/status/auth", "internal/status/state", "internal/status/web", "internal/text"},
		"a page shows what it is handed: it can be tried without a store or an election"},
	{"internal/status/state", []string{"internal/diagnose", "internal/operate", "internal/status/auth", "internal/status/web", "internal/text"},
		"the state is read once for page and API, which do not know each other"},
	{"internal/status/statustest", []string{"internal/diagnose", "internal/operate", "internal/text"}, "tests of page and API have the same states, and no servers"},
	{"internal/status/web", nil, "how clients that hang are served does not depend on what they ask for"},
	{"internal/text", nil, "words for people, wherever they are shown"},
	{"internal/trace", nil, "a span is handed over as a value: only its caller knows what it is of"},
	{"internal/testsupport", nil, "tests of every package start servers with it: importing one back would be a cycle"},
	{"internal/testsupport/fakelock", []string{"internal/elector", "internal/heartbeat"}, "a fake implements a port of the domain"},
	{"internal/testsupport/locktest", []string{"internal/elector", "internal/heartbeat"}, "a conformance suite exercises a port of the domain"},
	{"internal/testsupport/ground", nil, "test/suite starts in a moment: it must not wait for the drivers of every database"},
	{"pkg/baton", []string{"internal/elector", "internal/heartbeat", "internal/id", "internal/nodelock", "internal/redisconn", "internal/redislock", "internal/redislock/script"},
		"a program that embeds it gets the election and nothing else: no configuration, no jobs, no databases, no listener"},
	{"test/mutants", nil, "it reads the product as text"},
	{"test/prose", nil, "it reads the product as text"},
	{"internal/testsupport/ranout", nil, "test/suite starts in a moment: it must not wait for the drivers of every database"},
	{"test/suite", []string{"internal/testsupport/ground", "internal/testsupport/ranout"}, "it runs tests as processes, and knows nothing of what they test"},
	{"test/versions", []string{"internal/testsupport/ground"}, "it runs tests as processes, and knows nothing of what they test"},
	{"test/model", nil, "it shares no code with what it models, so that it shares no mistakes"},
	{"test/slots", nil, "what a job runs shares no code with what runs it"},
	{"test/linear", []string{"internal/elector", "internal/heartbeat", "internal/quorum", "internal/redisconn", "internal/redislock", "internal/redislock/script"}, "the node of a test is an elector over a lock, and nothing else of the daemon"},
}

// warden is the package that runs in a separate process before main. The package's comment says why.
const warden = "internal/command/warden"

// early lists packages that Go initialises before nearly all other packages.
var early = []string{"bufio", "bytes", "errors", "io", "os", "os/signal", "runtime", "strconv", "strings", "syscall", "time", "unsafe"}

// bare lists packages that import no library except golang.org/x/sys, because all other packages depend on them.
var bare = []string{"internal/heartbeat", "internal/command"}

// limit allows an import only in some packages.
type limit struct {
	what   string // an import path, which includes the packages below it
	only   []string
	reason string
}

var limits = []limit{
	{"baton/internal/testsupport", []string{"internal/testsupport", "internal/redisconn/redistest", "test/suite", "test/versions"}, "it is for tests"},
	{"baton/internal/flush/flushtest", []string{"internal/flush/flushtest"}, "it is for tests"},
	{"baton/cmd/baton/internal/show/showtest", []string{"cmd/baton/internal/show/showtest"}, "it is for tests"},
	{"baton/internal/flush/sql/sqltest", []string{"internal/flush/sql/sqltest"}, "it is for tests"},
	{"baton/internal/status/statustest", []string{"internal/status/statustest"}, "it is for tests"},
	{"go.opentelemetry.io", []string{"internal/testsupport/collector"}, "what a collector is sent is written by our own code, and held against the published schema by tests"},
	{"baton/internal/redisconn/redistest", []string{"internal/redisconn/redistest"}, "it is for tests"},
	{"os/signal", []string{"cmd", "internal/command/warden", "internal/testsupport", "test/slots/work", "test/suite", "test/versions", "test/mutants"}, "signals become a context in cmd; nothing below knows signals, but for the warden, which is a process of its own, and for tests, which clean up when they are interrupted"},
	{"github.com/spf13/cobra/doc", nil, "a test makes the pages of the manual: the binary holds no writer of them"},
	{"github.com/cpuguy83/go-md2man", nil, "a test makes the pages of the manual: the binary holds no writer of them"},
	{"github.com/spf13/cobra", []string{"cmd"}, "nothing below cmd knows that there is a command line"},
	{"github.com/gomodule/redigo", []string{"internal/redisconn", "internal/redisledger", "internal/redislock", "internal/flush/source", "internal/demo", "internal/testsupport", "clients/redigo"}, "one adapter speaks to Redis"},
	{"github.com/jackc/pgx", []string{"internal/flush/sql/postgres", "internal/demo", "internal/testsupport"}, "a driver belongs to its dialect"},
	{"github.com/go-sql-driver/mysql", []string{"internal/flush/sql/mysql", "internal/demo", "internal/testsupport"}, "a driver belongs to its dialect"},
	{"modernc.org/sqlite", []string{"internal/flush/sql/sqlite", "internal/demo", "internal/testsupport"}, "a driver belongs to its dialect"},
	{"github.com/pressly/goose", []string{"internal/flush/sql"}, "migrations belong to the adapter whose tables they make"},
	{"github.com/alicebob/miniredis", []string{"internal/demo"}, "an imitation of Redis is for the demo alone; tests use the real one"},
	{"github.com/yuin/gopher-lua", []string{"internal/redislock/lua"}, "only the lock runs its scripts where a server forbids them, and the library brings no Lua unless it is asked for"},
	{"github.com/robfig/cron", []string{"internal/job/schedule"}, "the rules of time zones and clock changes are written once"},
}

// uuidLibrary is called in one file only, because the versions of the library are incompatible with each other.
const uuidLibrary = "github.com/satori/go.uuid"

// source is one file of the program that is not a test.
type source struct {
	name string // relative to the module
	file *ast.File
	set  *token.FileSet // contains the positions of file
}

func (s source) pkg() string { return path.Dir(s.name) }

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		paths = append(paths, p)
	}
	return paths
}

func TestPackagesKeepTheirPlace(t *testing.T) {
	files := parseModule(t, "..")
	if len(files) < 10 {
		t.Fatalf("found %d files of the program: this test looks in the wrong place", len(files))
	}
	for _, v := range violations(files) {
		t.Error(v)
	}
}

// A rule is useful only if a violation of the rule is found.
func TestEveryBreachIsNoticed(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"internal/job/a.go", `import _ "baton/internal/elector"`, "must not import baton/internal/elector"},
		{"internal/job/a.go", `import _ "github.com/robfig/cron/v3"`, "written once"},
		{"internal/job/plan/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/job/schedule/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/flush/a.go", `import _ "baton/internal/elector"`, "must not import baton/internal/elector"},
		{"internal/flush/a.go", `import _ "baton/internal/flush/source/spec"`, "must not import baton/internal/flush/source/spec"},
		{"internal/finding/a.go", `import _ "baton/internal/text"`, "must not import baton/internal/text"},
		{"internal/flush/mapping/a.go", `import _ "baton/internal/flush"`, "must not import baton/internal/flush"},
		{"internal/flush/row/a.go", `import _ "baton/internal/flush/mapping"`, "must not import baton/internal/flush/mapping"},
		{"internal/flush/sql/a.go", `import _ "baton/internal/flush/mapping"`, "must not import baton/internal/flush/mapping"},
		{"internal/balance/a.go", `import _ "baton/internal/redislock"`, "must not import baton/internal/redislock"},
		{"internal/program/a.go", `import _ "baton/internal/redisledger"`, "must not import baton/internal/redisledger"},
		{"internal/daemon/a.go", `import _ "baton/internal/flush/source"`, "must not import baton/internal/flush/source"},
		{"internal/lockcmd/a.go", `import _ "baton/internal/daemon"`, "must not import baton/internal/daemon"},
		{"internal/crash/a.go", `import _ "baton/internal/daemon"`, "must not import baton/internal/daemon"},
		{"internal/alert/a.go", `import _ "baton/internal/status"`, "must not import baton/internal/status"},
		{"internal/diagnose/a.go", `import _ "baton/internal/status"`, "must not import baton/internal/status"},
		{"internal/diagnose/a.go", `import _ "baton/internal/redislock"`, "must not import baton/internal/redislock"},
		{"internal/doctor/a.go", `import _ "baton/internal/daemon"`, "must not import baton/internal/daemon"},
		{"internal/heartbeat/a.go", `import _ "baton/internal/config"`, "must not import baton/internal/config"},
		{"internal/heartbeat/a.go", `import _ "golang.org/x/sync/errgroup"`, "standard library"},
		{"internal/command/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/command/a.go", `import _ "go.uber.org/zap"`, "standard library"},
		{"internal/config/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/status/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/status/page/a.go", `import _ "baton/internal/status/api"`, "must not import baton/internal/status/api"},
		{"internal/status/metrics/a.go", `import _ "baton/internal/status/state"`, "must not import baton/internal/status/state"},
		{"internal/notify/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/elector/a.go", `import _ "baton/internal/redislock"`, "must not import baton/internal/redislock"},
		{"internal/quorum/a.go", `import _ "baton/internal/redislock"`, "must not import baton/internal/redislock"},
		{"internal/quorum/a.go", `import _ "github.com/gomodule/redigo/redis"`, "one adapter speaks to Redis"},
		{"internal/flush/sql/a.go", `import _ "baton/internal/flush/source"`, "must not import baton/internal/flush/source"},
		{"internal/flush/sql/deep/a.go", `import _ "baton/internal/elector"`, "must not import baton/internal/elector"},
		{"internal/flush/sql/a.go", `import _ "github.com/jackc/pgx/v5"`, "belongs to its dialect"},
		{"internal/flush/sql/mysql/a.go", `import _ "modernc.org/sqlite"`, "belongs to its dialect"},
		{"internal/flush/sql/mysql/a.go", `import _ "baton/internal/flush/sql/sqlite"`, "must not import baton/internal/flush/sql/sqlite"},
		{"internal/flush/sql/stdsql/a.go", `import _ "baton/internal/flush/sql/mysql"`, "must not import baton/internal/flush/sql/mysql"},
		{"internal/flush/source/a.go", `import _ "baton/internal/flush/sql"`, "must not import baton/internal/flush/sql"},
		{"internal/flush/source/a.go", `import _ "baton/internal/testsupport"`, "it is for tests"},
		{"internal/flush/source/a.go", `import _ "baton/internal/flush/flushtest"`, "it is for tests"},
		{"internal/redisledger/a.go", `import _ "baton/internal/flush/source"`, "must not import baton/internal/flush/source"},
		{"internal/redislock/a.go", `import _ "baton/internal/redisledger"`, "must not import baton/internal/redisledger"},
		{"internal/redislock/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/redislock/script/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/redisconn/a.go", `import _ "baton/internal/elector"`, "must not import baton/internal/elector"},
		{"internal/demo/a.go", `import _ "baton/internal/flush"`, "share its mistakes"},
		{"internal/demo/a.go", `import _ "baton/internal/flush/sql"`, "share its mistakes"},
		{"internal/demo/a.go", `import _ "baton/internal/daemon"`, "share its mistakes"},
		{"internal/testsupport/a.go", `import _ "baton/internal/flush"`, "would be a cycle"},
		{"internal/trace/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/trace/a.go", `import _ "go.opentelemetry.io/otel"`, "our own code"},
		{"internal/program/a.go", `import _ "baton/internal/trace"`, "must not import baton/internal/trace"},
		{"internal/flush/a.go", `import _ "baton/internal/trace"`, "must not import baton/internal/trace"},
		{"internal/job/a.go", `import _ "baton/internal/trace"`, "must not import baton/internal/trace"},
		{"internal/testsupport/a.go", `import _ "github.com/alicebob/miniredis/v2"`, "tests use the real one"},
		{"cmd/baton/a.go", `import _ "baton/internal/flush/source"`, "must not import baton/internal/flush/source"},
		{"internal/new/a.go", ``, "no rule"},
		{"internal/daemon/site/a.go", `import _ "baton/internal/job"`, "must not import baton/internal/job"},
		{"internal/daemon/a.go", `import _ "os/signal"`, "signals become a context"},
		{"internal/daemon/a.go", `import _ "github.com/spf13/cobra"`, "command line"},
		{"internal/daemon/a.go", `import "os"; func f() { os.Exit(1) }`, "os.Exit"},
		{"internal/daemon/a.go", `import "os"; var exit = os.Exit`, "os.Exit"},
		{"internal/daemon/a.go", `import sys "os"; func f() { sys.Exit(1) }`, "os.Exit"},
		{"internal/daemon/a.go", `import "log"; func f() { log.Fatalf("x") }`, "log.Fatalf"},
		{"internal/daemon/a.go", `func init() {}`, "init()"},
		{"cmd/baton/internal/show/a.go", `import _ "baton/internal/operate"`, "must not import baton/internal/operate"},
		{"cmd/baton/internal/deadcmd/a.go", `import _ "baton/internal/operate/direct"`, "must not import baton/internal/operate/direct"},
		{"cmd/baton/a.go", `func init() {}`, "init()"},
		{"cmd/baton/a.go", `import _ "github.com/spf13/cobra/doc"`, "no writer"},
		{"internal/command/a.go", `func init() {}`, "init()"},
		{"internal/command/a.go", `import "os"; func f() { os.Exit(1) }`, "os.Exit"},
		{"internal/command/warden/a.go", `import _ "golang.org/x/sys/unix"`, "before main"},
		{"internal/command/warden/a.go", `import _ "fmt"`, "before main"},
	} {
		t.Run(c.name+" "+c.code, func(t *testing.T) {
			got := violations([]source{parseSource(t, c.name, c.code)})
			if len(got) != 1 || !strings.Contains(got[0], c.want) || !strings.Contains(got[0], c.name) {
				t.Errorf("got %q, want one line that names %s and says %q", got, c.name, c.want)
			}
		})
	}
}

func TestAllowedSourcesPass(t *testing.T) {
	for _, c := range []struct{ name, code string }{
		{"cmd/baton/main.go", `import ("os"; "os/signal"; "baton/internal/daemon"); func main() { os.Exit(daemon.X) }`},
		{"internal/daemon/a.go", `import (_ "baton/internal/daemon/work"; _ "baton/internal/elector")`},
		{"internal/job/deep/a.go", `import _ "baton/internal/job"`},
		{"internal/job/a.go", `import "os"; type T struct{}; func (T) init() {}; func f() { os.Getpid() }`},
		{"internal/elector/a.go", `import _ "github.com/satori/go.uuid"`},
		{"internal/command/warden/a.go", `import ("os"; "os/signal"); func init() { os.Exit(0) }`},
	} {
		if got := violations([]source{parseSource(t, c.name, c.code)}); len(got) != 0 {
			t.Errorf("%s %s: %q", c.name, c.code, got)
		}
	}
}

func TestSecondCallerOfTheUUIDLibraryIsNoticed(t *testing.T) {
	code := fmt.Sprintf("import _ %q", uuidLibrary)
	got := violations([]source{parseSource(t, "internal/elector/a.go", code), parseSource(t, "internal/elector/b.go", code)})
	if len(got) != 1 || !strings.Contains(got[0], "internal/elector/b.go") {
		t.Errorf("got %q", got)
	}
}

// violations lists all violations, with one line for each.
func violations(files []source) []string {
	var all []string
	report := func(s source, format string, args ...any) {
		all = append(all, s.name+": "+fmt.Sprintf(format, args...))
	}
	uuidIn := ""
	for _, s := range files {
		r := ruleFor(s.pkg())
		if r == nil {
			report(s, "there is no rule for package %s: say in architecture_test.go what it may import, and why", s.pkg())
			continue
		}
		for _, imported := range s.imports() {
			if l := limitOf(imported); l != nil {
				if !slices.ContainsFunc(l.only, func(dir string) bool { return within(s.pkg(), dir) }) {
					report(s, "must not import %s, only %s may: %s", imported, strings.Join(l.only, ", "), l.reason)
				}
			} else if dep, ours := strings.CutPrefix(imported, "baton/"); ours && !r.allows(dep) {
				report(s, "must not import %s: %s", imported, r.reason)
			} else if !ours && slices.Contains(bare, r.pkg) && strings.Contains(imported, ".") && !within(imported, "golang.org/x/sys") {
				report(s, "must not import %s: %s needs the standard library and the kernel, nothing else", imported, path.Base(r.pkg))
			}
			if s.pkg() == warden && !slices.Contains(early, imported) {
				report(s, "must not import %s: this process begins before main, as soon as what it imports has begun", imported)
			}
			if imported == uuidLibrary {
				if uuidIn != "" {
					report(s, "%s is called in %s already: it has one caller", uuidLibrary, uuidIn)
				}
				uuidIn = s.name
			}
		}
		if !within(s.pkg(), "cmd") && !within(s.pkg(), "internal/testsupport") && !within(s.pkg(), "test") && s.pkg() != warden {
			for _, call := range exits(s.file) {
				report(s, "%s: only cmd ends the process; return an error", call)
			}
		}
		if hasInit(s.file) && s.pkg() != warden {
			report(s, "has an init(): what happens at start is written in one straight line, in daemon")
		}
	}
	return all
}

// allows reports whether the package may import dep. If a package below another package has its own rule, the permission to import one of
// the two does not include the other.
func (r *rule) allows(dep string) bool {
	room := ruleFor(dep)
	return room == r || room != nil && slices.Contains(r.may, room.pkg)
}

// ruleFor finds the most specific rule of a package.
func ruleFor(pkg string) *rule {
	var best *rule
	for i := range rules {
		if within(pkg, rules[i].pkg) && (best == nil || len(rules[i].pkg) > len(best.pkg)) {
			best = &rules[i]
		}
	}
	return best
}

func limitOf(imported string) *limit {
	for i := range limits {
		if within(imported, limits[i].what) {
			return &limits[i]
		}
	}
	return nil
}

func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// exits lists the places that name a function which ends the process.
func exits(file *ast.File) []string {
	enders := map[string][]string{
		"os":                    {"Exit"},
		"syscall":               {"Exit"},
		"golang.org/x/sys/unix": {"Exit"},
		"runtime":               {"Goexit"},
		"log":                   {"Fatal", "Fatalf", "Fatalln"},
	}
	known := map[string]string{} // maps the name of a package in this file to its path
	for _, spec := range file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		known[name] = p
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(enders[known[x.Name]], sel.Sel.Name) {
			found = append(found, known[x.Name]+"."+sel.Sel.Name)
		}
		return true
	})
	return found
}

func hasInit(file *ast.File) bool {
	return !ast.IsGenerated(file) && slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && f.Recv == nil && f.Name.Name == "init"
	})
}

// parseModule reads every file of the program below root, for every operating system. Separate modules (tools, benchmarks) do not belong
// to the program.
func parseModule(t *testing.T, root string) []source {
	t.Helper()
	var files []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, noModule := os.Stat(filepath.Join(name, "go.mod"))
			if rel != "." && (noModule == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			code, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			files = append(files, parse(t, filepath.ToSlash(rel), string(code)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parseSource(t *testing.T, name, code string) source {
	t.Helper()
	return parse(t, name, "package p; "+code)
}

func parse(t *testing.T, name, code string) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, code, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{name, file, set}
}
