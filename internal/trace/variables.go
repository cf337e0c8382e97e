package trace

// Variable is an environment variable that FromEnvironment reads.
type Variable struct{ Name, Short string }

// exporterPrefix is the prefix of the variables that also exist for traces alone.
const exporterPrefix = "OTEL_EXPORTER_OTLP_"

// Variables returns all variables that FromEnvironment reads, each with a short description. The exporter's variables have a second name
// for traces alone, such as OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
func Variables() []Variable {
	return []Variable{
		{exporterPrefix + "ENDPOINT", "URL of the collector; none: no traces"},
		{exporterPrefix + "HEADERS", "key=value,key=value for each request"},
		{exporterPrefix + "PROTOCOL", "http/json, and no other"},
		{exporterPrefix + "TIMEOUT", "timeout of a request, in ms (10000)"},
		{exporterPrefix + "COMPRESSION", "none (default) or gzip"},
		{exporterPrefix + "CERTIFICATE", "file with authorities to trust"},
		{exporterPrefix + "CLIENT_CERTIFICATE", "file with baton's own certificate"},
		{exporterPrefix + "CLIENT_KEY", "file with its private key"},
		{"OTEL_SDK_DISABLED", "true: no traces"},
		{"OTEL_TRACES_EXPORTER", "otlp (default); none: no traces"},
		{"OTEL_TRACES_SAMPLER", "always_on (default), traceidratio, ..."},
		{"OTEL_TRACES_SAMPLER_ARG", "ratio of traceidratio, 0 to 1 (1)"},
		{"OTEL_SERVICE_NAME", "name of the service (baton)"},
		{"OTEL_RESOURCE_ATTRIBUTES", "key=value,key=value of this node"},
		{"OTEL_BSP_SCHEDULE_DELAY", "time between requests, in ms (5000)"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "spans that wait at most (2048)"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "spans of a request at most (512)"},
	}
}
