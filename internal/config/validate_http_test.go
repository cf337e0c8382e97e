package config

import (
	"strings"
	"testing"
)

func TestWhatWouldLayATokenOpenIsRefusedAtItsPlace(t *testing.T) {
	open := "which other hosts can reach, so others on the network can read the token: add http.tls, or listen on 127.0.0.1 behind a proxy that encrypts"
	for text, want := range map[string]string{
		"http: {listen: 10.0.0.7:9747, token_file: /t}":                            "2:31: http.token_file: http.listen is 10.0.0.7:9747, " + open,
		"http: {listen: \":9747\", token_file: /t}":                                "2:25: http.token_file: http.listen is :9747, " + open,
		"http: {listen: \"0.0.0.0:9747\", token_file: /t}":                         "2:32: http.token_file: http.listen is 0.0.0.0:9747, " + open,
		"http: {listen: \"[::]:9747\", token_file: /t}":                            "2:29: http.token_file: http.listen is [::]:9747, " + open,
		"http: {listen: db1:9747, token_file: /t}":                                 "2:26: http.token_file: http.listen is db1:9747, " + open,
		"http: {listen: 10.0.0.7:9747}":                                            "",
		"http: {token_file: /t}":                                                   "",
		"http: {listen: \"localhost:1\", token_file: /t}":                          "",
		"http: {listen: \"[::1]:1\", token_file: /t}":                              "",
		"http: {listen: off, token_file: /t}":                                      "",
		"http: {listen: \":1\", token_file: /t, tls: {cert_file: c, key_file: k}}": "",
		"http: {tls: {cert_file: c}}":                                              "http.tls.key_file: required; for example /etc/baton/tls.key",
		"http: {tls: {key_file: k}}":                                               "http.tls.cert_file: required; for example /etc/baton/tls.crt",
		"http: {listen: 9747}":                                                     `http.listen: "9747": write host:port, for example 127.0.0.1:9747, or off`,
		"http: {hosts: [baton.example.com, LOCAL]}":                                "",
		"http: {hosts: [\"https://baton.example.com\"]}":                           `http.hosts[0]: "https://baton.example.com": write a host name without a port, for example baton.example.com`,
		"http: {token_file: /t, read_token_file: /r}":                              "",
		"http: {token_file: /t, read_token_file: /t}":                              "http.read_token_file: this is the same file as http.token_file; write another token into another file",
		"http: {token_file: /run/t, read_token_file: /run/./t}":                    "http.read_token_file: this is the same file as http.token_file",
		"http: {read_token_file: /t}":                                              "http.read_token_file: needs http.token_file, too",
		"http: {trusted_proxies: [10.0.0.0/8, 127.0.0.1]}":                         "",
		"http: {trusted_proxies: [10.0.0.0/8, proxy.example]}":                     `http.trusted_proxies[1]: "proxy.example": write an address or a network`,
		"http: {hosts: [a, \"b:80\"]}":                                             `http.hosts[1]: "b:80": write a host name without a port, for example baton.example.com`,
	} {
		_, err := read(t, "node: {id: n}\n"+text+"\n", nil, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}
