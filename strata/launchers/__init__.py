"""Where agents are started: on this host, over SSH, by Slurm, on Ray, by Kubernetes."""
