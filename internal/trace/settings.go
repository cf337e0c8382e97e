package trace

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Settings say where traces are sent, and which traces are sent.
type Settings struct {
	endpoint   string
	headers    map[string]string // secret
	timeout    time.Duration     // the time limit of one request
	gzip       bool
	tls        *tls.Config
	below      uint64 // traces with a lower number are not sent
	delay      time.Duration
	queue      int
	batch      int
	attributes map[string]string // the attributes of the resource
}

// Problem is a problem with an environment variable. It never quotes a value that may be secret.
type Problem struct{ Variable, Message string }

// environment reads environment variables, and records their problems.
type environment struct {
	getenv   func(string) (string, bool)
	problems []Problem
}

// FromEnvironment reads OpenTelemetry's variables for exporters. It returns nil Settings if a variable has a problem, or if no traces are
// to be sent, for example because there is no endpoint.
func FromEnvironment(getenv func(string) (string, bool)) (*Settings, []Problem) {
	e := &environment{getenv: getenv}
	_, set := e.exporter("ENDPOINT")
	if set == "" || e.oneOf("OTEL_SDK_DISABLED", "false", "true") == "true" || e.oneOf("OTEL_TRACES_EXPORTER", "otlp", "none") == "none" {
		return nil, nil
	}
	if name, protocol := e.exporter("PROTOCOL"); protocol != "" && protocol != "http/json" {
		e.wrong(name, fmt.Sprintf("%q is not supported: set the protocol to http/json, and the endpoint to the collector's port for "+
			"OTLP over HTTP, usually 4318", protocol))
	}
	s := &Settings{
		endpoint: e.endpoint(), headers: e.headers(), timeout: e.milliseconds(10_000, e.which("TIMEOUT")),
		gzip: e.oneOf(e.which("COMPRESSION"), "none", "gzip") == "gzip", tls: e.encryption(), below: e.sampler(),
		delay: e.milliseconds(5000, "OTEL_BSP_SCHEDULE_DELAY"), queue: e.number(2048, "OTEL_BSP_MAX_QUEUE_SIZE"),
		batch: e.number(512, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"), attributes: e.list("OTEL_RESOURCE_ATTRIBUTES"),
	}
	s.batch = min(s.batch, s.queue)
	if name := e.get("OTEL_SERVICE_NAME"); name != "" {
		s.attributes["service.name"] = name
	}
	if len(e.problems) > 0 {
		return nil, e.problems
	}
	return s, nil
}

func (e *environment) get(name string) string {
	value, ok := e.getenv(name)
	if !ok {
		return ""
	}
	return strings.TrimSpace(value)
}

func (e *environment) wrong(variable, message string) {
	e.problems = append(e.problems, Problem{variable, message})
}

// exporter returns the name and the value of a setting of the exporter. The variable for traces alone has priority over the variable for
// all signals (traces, metrics and logs).
func (e *environment) exporter(setting string) (name, value string) {
	name = e.which(setting)
	return name, e.get(name)
}

func (e *environment) which(setting string) string {
	if name := exporterPrefix + "TRACES_" + setting; e.get(name) != "" {
		return name
	}
	return exporterPrefix + setting
}

// oneOf returns the value of a setting that must be one of the given values. The first value is the default.
func (e *environment) oneOf(name string, values ...string) string {
	value := strings.ToLower(e.get(name))
	if value == "" {
		return values[0]
	}
	if !slices.Contains(values, value) {
		e.wrong(name, fmt.Sprintf("%q is not supported; write %s", value, strings.Join(values, " or ")))
	}
	return value
}

func (e *environment) number(without int, name string) int {
	value := e.get(name)
	if value == "" {
		return without
	}
	n, err := strconv.Atoi(value)
	if err != nil || n <= 0 || n > 1_000_000_000 {
		e.wrong(name, fmt.Sprintf("%q is not a number above 0", value))
		return without
	}
	return n
}

func (e *environment) milliseconds(without int, name string) time.Duration {
	return time.Duration(e.number(without, name)) * time.Millisecond
}

// endpoint returns the URL that traces are posted to.
func (e *environment) endpoint() string {
	name, value := e.exporter("ENDPOINT")
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		e.wrong(name, "write a URL such as http://127.0.0.1:4318") // the URL is not quoted, because it may contain a password
		return ""
	}
	if name == exporterPrefix+"ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	return u.String()
}

func (e *environment) headers() map[string]string {
	name := e.which("HEADERS")
	headers := e.list(name)
	for key, value := range headers {
		noName := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("()<>@,;:\\\"/[]?={}", r) }
		noValue := func(r rune) bool { return r < ' ' || r == 0x7f }
		if strings.ContainsFunc(key, noName) || strings.ContainsFunc(value, noValue) {
			e.wrong(name, "it has a name or a value that is not allowed in an HTTP header")
			return nil
		}
	}
	return headers
}

// list returns the pairs in a setting such as key=value,key=value. The values are encoded as in URLs.
func (e *environment) list(name string) map[string]string {
	list := map[string]string{}
	for pair := range strings.SplitSeq(e.get(name), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			e.wrong(name, "write key=value,key=value, with values encoded as in URLs") // the value is not quoted, because it may be secret
			return list
		}
		list[key] = decoded
	}
	return list
}

// encryption returns the TLS configuration with the certificates from the files that the variables name.
func (e *environment) encryption() *tls.Config {
	c := &tls.Config{}
	if name, file := e.exporter("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		c.RootCAs = x509.NewCertPool()
		if err == nil && !c.RootCAs.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("no certificate in %s", file)
		}
		if err != nil {
			e.wrong(name, err.Error())
		}
	}
	name, file := e.exporter("CLIENT_CERTIFICATE")
	keyName, key := e.exporter("CLIENT_KEY")
	if file == "" && key == "" {
		return c
	}
	pair, err := tls.LoadX509KeyPair(file, key)
	if err != nil {
		e.wrong(name, fmt.Sprintf("with %s: %v", keyName, err))
	}
	c.Certificates = []tls.Certificate{pair}
	return c
}

// sampler returns a limit: traces with a lower number are not sent. The number of a trace is made of the last 56 bits of its id. A
// sampler's rules for spans with a remote parent never apply, because every trace begins in this process.
func (e *environment) sampler() uint64 {
	const all = 1 << 56
	kinds := []string{
		"always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
	switch strings.TrimPrefix(e.oneOf("OTEL_TRACES_SAMPLER", kinds...), "parentbased_") {
	case "always_off":
		return all
	case "traceidratio":
		const name = "OTEL_TRACES_SAMPLER_ARG"
		value := e.get(name)
		if value == "" {
			return 0
		}
		ratio, err := strconv.ParseFloat(value, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			e.wrong(name, fmt.Sprintf("%q is not a ratio from 0 to 1", value))
			return 0
		}
		return uint64((1 - ratio) * all)
	}
	return 0
}

// host returns the host of the collector, without parts that may be secret.
func (s *Settings) host() string {
	u, err := url.Parse(s.endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// client returns the HTTP client for the collector. It follows no redirects, because the headers are only for one host.
func (s *Settings) client() *http.Client {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.tls, ForceAttemptHTTP2: true,
		MaxIdleConns: 1, IdleConnTimeout: 2 * s.delay, MaxResponseHeaderBytes: 64 << 10,
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// resource returns the description of this process for its spans.
func (s *Settings) resource(o Options) resource {
	facts := map[string]string{"service.name": "baton", "service.version": o.Version, "service.instance.id": o.NodeID}
	maps.Copy(facts, s.attributes)
	var r resource
	for _, key := range slices.Sorted(maps.Keys(facts)) {
		r.Attributes = append(r.Attributes, encodeAttribute(Attribute{key, facts[key]}))
	}
	return r
}
