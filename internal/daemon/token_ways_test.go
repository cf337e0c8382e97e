package daemon

import (
	"errors"
	"strings"
	"testing"

	"baton/internal/operate"
)

// With plain http the token is sent only to this host, whatever name the address has.
func TestTheTokenIsSentWhereNobodyElseCanReadIt(t *testing.T) {
	token := writeFile(t, "token", strings.Repeat("x", 32))
	for server, sent := range map[string]bool{
		"http://db1:9747": false, "http://db1.example.com": false, "http://10.0.0.7:9747": false, "http://[fe80::1]:9747": false,
		"http://localhost.example.com:9747": false, "http://127.0.0.1.example.com": false,
		"http://localhost:9747": true, "http://127.0.0.1:9747": true, "http://127.0.1.1:9747": true, "http://[::1]:9747": true,
		"https://db1:9747": true, "unix:///run/baton/admin.sock": true,
	} {
		_, err := operate.DialServer(server, token, "")
		if sent && err != nil || !sent && !errors.Is(err, operate.ErrNotAllowed) {
			t.Errorf("%s: %v; want the token sent: %t", server, err, sent)
		}
	}
}
