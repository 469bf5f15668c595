// Package autoscaling compares package capacity/autoscaler with Kubernetes' own HorizontalPodAutoscaler:
// its controller runs on a fake clock, with fake pods and metrics, and both decide at each sync.
//
// It is a module of its own, since it needs the modules of Kubernetes' components.
package autoscaling
