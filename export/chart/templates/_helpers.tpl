{{- define "triton.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}

{{- define "triton.selector" -}}
app.kubernetes.io/name: {{ include "triton.name" . }}
app.kubernetes.io/component: triton
{{- end -}}

{{- define "triton.labels" -}}
{{ include "triton.selector" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}
