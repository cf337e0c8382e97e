package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
)

// Whatever is sent is granted, and nothing else.
func TestTheDocumentedUserMayDoWhatIsSentAndNoMore(t *testing.T) {
	r := testsupport.StartRedis(t)
	all, err := redis.Strings(r.Conn().Do("COMMAND", "LIST"))
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, arg := range testsupport.DocumentedUser(t) {
		if name, ok := strings.CutPrefix(arg.(string), "+"); ok {
			granted = append(granted, name)
		}
	}
	// What the client library sends, or what stands in the code under another name.
	sent := map[string]bool{
		"client|setname": true, "cluster|slots": true, "cluster|nodes": true, "select": true, "eval": true, "evalsha": true, "subscribe": true,
	}
	var files []string
	for _, pattern := range []string{"flush/source/*.*", "flush/source/*/*.*", "redisconn/*.go", "redislock/script/*.*",
		"redisledger/*.*", "redislock/*.*"} {
		found, _ := filepath.Glob(root + "/internal/" + pattern) // the patterns are constants: no error
		if len(found) == 0 {
			t.Fatalf("where is the code of %s, which sends commands?", pattern)
		}
		files = append(files, found...)
	}
	word := regexp.MustCompile(`["']([A-Z]{3,})["']`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range word.FindAllStringSubmatch(string(text), -1) {
			name := strings.ToLower(m[1])
			// A command's name that is only read, in an answer or in the stream of changes; and what goes with a subcommand.
			if !slices.Contains([]string{"readonly", "swapdb", "cluster", "client"}, name) && slices.Contains(all, name) {
				sent[name] = true
			}
		}
	}
	for name := range sent {
		if !slices.Contains(granted, name) {
			t.Errorf("%s is sent, and docs/redis.md does not grant it", name)
		}
	}
	for _, name := range granted {
		if !sent[name] {
			t.Errorf("docs/redis.md grants %s, which is never sent", name)
		}
	}
}
