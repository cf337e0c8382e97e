package trace

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

func from(env map[string]string) (*Settings, []Problem) {
	return FromEnvironment(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
}

// with returns an environment with an endpoint and additional variables.
func with(more ...string) map[string]string {
	env := map[string]string{endpoint: "http://127.0.0.1:4318"}
	for i := 0; i < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return env
}

func TestThereAreNoTracesUnlessAnEndpointIsSet(t *testing.T) {
	for _, env := range []map[string]string{
		nil,
		{endpoint: ""},
		{endpoint: " "},
		{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SERVICE_NAME": "x"},
		{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_SDK_DISABLED": "perhaps"}, // variables for other programs on the host
		with("OTEL_SDK_DISABLED", "TRUE"),
		with("OTEL_TRACES_EXPORTER", "none"),
		with("OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
	} {
		s, problems := from(env)
		if s != nil || problems != nil {
			t.Errorf("%v: %+v, %v", env, s, problems)
		}
		if NewTracer(s, Options{}) != nil {
			t.Errorf("%v: there is a tracer", env)
		}
	}
}

func TestEndpoints(t *testing.T) {
	const own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	for _, c := range []struct {
		env        map[string]string
		want, host string
	}{
		{with(), "http://127.0.0.1:4318/v1/traces", "127.0.0.1:4318"},
		{with(endpoint, "https://c.example/otlp/"), "https://c.example/otlp/v1/traces", "c.example"},
		{with(endpoint, "https://c.example/otlp?key=secret"), "https://c.example/otlp/v1/traces?key=secret", "c.example"},
		{with(own, "http://u:secret@c.example:9/t"), "http://u:secret@c.example:9/t", "c.example:9"}, // as it is
		{map[string]string{own: "http://c.example"}, "http://c.example", "c.example"},
	} {
		s, problems := from(c.env)
		if problems != nil || s.endpoint != c.want || s.host() != c.host {
			t.Errorf("%v: %+v, %v, want %s at %s", c.env, s, problems, c.want, c.host)
		}
	}
}

func TestSettings(t *testing.T) {
	s, problems := from(with(
		"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json",
		"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b%2C, x = y=z,", "OTEL_EXPORTER_OTLP_TIMEOUT", "1500",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", "OTEL_TRACES_SAMPLER", "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG", "0.25",
		"OTEL_BSP_SCHEDULE_DELAY", "100", "OTEL_BSP_MAX_QUEUE_SIZE", "20", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "30",
		"OTEL_SERVICE_NAME", "named", "OTEL_RESOURCE_ATTRIBUTES", "service.name=other,deployment.environment.name=test%3D1",
	))
	if problems != nil {
		t.Fatal(problems)
	}
	if diff := cmp.Diff(map[string]string{"api-key": "a b,", "x": "y=z"}, s.headers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"service.name": "named", "deployment.environment.name": "test=1"}, s.attributes); diff != "" {
		t.Error(diff)
	}
	if s.timeout != 1500*time.Millisecond || !s.gzip || s.below != 3<<54 || s.delay != 100*time.Millisecond ||
		s.queue != 20 || s.batch != 20 {
		t.Errorf("%+v", s)
	}
	s, problems = from(with())
	if problems != nil || s.timeout != 10*time.Second || s.gzip || s.below != 0 || s.delay != 5*time.Second ||
		s.queue != 2048 || s.batch != 512 {
		t.Errorf("without more: %+v, %v", s, problems)
	}
	for sampler, want := range map[string]uint64{
		"always_on": 0, "always_off": 1 << 56, "parentbased_always_on": 0, "parentbased_always_off": 1 << 56, "traceidratio": 0,
	} {
		if s, problems := from(with("OTEL_TRACES_SAMPLER", sampler)); problems != nil || s.below != want {
			t.Errorf("%s: %+v, %v", sampler, s, problems)
		}
	}
}

// TestWhatCannotBeUsedIsRefused checks that each problem names its variable, and does not quote a value that may be secret.
func TestWhatCannotBeUsedIsRefused(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct{ variable, value, want string }{
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/json"},
		{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf", "http/json"},
		{"OTEL_SDK_DISABLED", "perhaps", "false or true"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "otlp or none"},
		{endpoint, "secret:4318", "http://127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://%secret", "http://127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http:///secret", "http://127.0.0.1:4318"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "secret", "key=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=%secret", "key=value"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "=secret", "key=value"},
		{"OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=secret", "header"},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0D%0A", "header"},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "10s", `"10s"`},
		{"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "0", "above 0"},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "none or gzip"},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", none, none},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", none, none},
		{"OTEL_TRACES_SAMPLER", "jaeger_remote", "parentbased_traceidratio"},
		{"OTEL_BSP_SCHEDULE_DELAY", "-1", "above 0"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "many", "above 0"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "99999999999", "above 0"},
		{"OTEL_RESOURCE_ATTRIBUTES", "secret", "key=value"},
	} {
		s, problems := from(with(c.variable, c.value))
		if s != nil || len(problems) != 1 || problems[0].Variable != c.variable || !strings.Contains(problems[0].Message, c.want) ||
			strings.Contains(problems[0].Message, "secret") {
			t.Errorf("%s=%s: %+v, %q", c.variable, c.value, s, problems)
		}
	}
	for _, arg := range []string{"1.1", "-0.1", "NaN", "half"} {
		_, problems := from(with("OTEL_TRACES_SAMPLER", "traceidratio", "OTEL_TRACES_SAMPLER_ARG", arg))
		if len(problems) != 1 || problems[0].Variable != "OTEL_TRACES_SAMPLER_ARG" {
			t.Errorf("%s: %q", arg, problems)
		}
	}
	if _, problems := from(with("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_TRACES_SAMPLER", "x")); len(problems) != 2 {
		t.Errorf("two mistakes: %q", problems)
	}
}

func TestTheCollectorsCertificateIsChecked(t *testing.T) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for env, known := range map[string]bool{"OTEL_EXPORTER_OTLP_CERTIFICATE": true, "SOMETHING_ELSE": false} {
		settings, problems := from(with(endpoint, s.URL, env, file))
		if problems != nil {
			t.Fatal(problems)
		}
		resp, err := settings.client().Get(s.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != known {
			t.Errorf("with %s: %v", env, err)
		}
	}
}
