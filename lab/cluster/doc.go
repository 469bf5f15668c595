// Package cluster is a Kubernetes cluster without containers, for tests of fleets: etcd, the API server,
// controller manager, scheduler and kubectl as lab/scripts/controlplane.sh builds them, and process nodes.
//
// A process node stands for a kubelet. It registers a Node with a Lease and heartbeats. It runs a bound
// pod's command in an overlay of this machine's root, pinned to the node's cores, with volumes, the
// downward API and a token bound to the pod. So the product's code in a pod runs unchanged. There are
// no images, cgroups or networks of pods. It needs root.
//
// TestKubelet has these on a node of its own, with a kubelet, containerd and runc.
package cluster
