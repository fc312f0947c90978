"""The flags of JAX that weft has no option for, with their defaults, and variables of neither.

`config` accepts them, and reading a flag returns the value that was set. Setting a flag changes
nothing else, except for the flags of `weft.options.ACTIONS`.
"""

from typing import Any

_OFF = """
check_vma eager_constant_folding jax2tf_associative_scan_reductions jax_accurate_erf_inv
jax_bcoo_cusparse_lowering jax_check_static_indices jax_compilation_cache_check_contents
jax_compilation_cache_expect_pgle jax_compilation_cache_include_metadata_in_key jax_custom_jvp3
jax_custom_vjp3 jax_debug_leaked_clients_on_clear_backends jax_disable_bwd_checks
jax_disable_vmap_shmap_error jax_disallow_mesh_context_manager jax_distributed_debug
jax_distributed_verify_secure_credentials jax_enable_pgle jax_enable_recoverability
jax_experimental_unsafe_xla_runtime_errors jax_export_deserialize_expired_versions
jax_export_ignore_forward_compatibility jax_force_dcn_cross_host_transfers
jax_high_dynamic_range_gumbel jax_log_checkpoint_residuals jax_mosaic_allow_hlo
jax_mosaic_unzip_debug_locations jax_pallas_auto_assign_collective_ids
jax_pallas_enable_debug_checks jax_pallas_poison_buffers jax_pallas_verbose_errors
jax_ragged_dot_use_gpu_pallas_triton_lowering jax_raise_on_ppermute_sort_diff
jax_raise_persistent_cache_errors jax_refs_to_pins jax_remat3 jax_remat_barrier_no_cotangents
jax_remove_custom_partitioning_ptr_from_cache_key jax_remove_size_one_mesh_axis_from_type
jax_scan3 jax_share_binary_between_hosts jax_softmax_custom_jvp jax_thread_guard
jax_threefry_gpu_kernel_lowering jax_use_cpp_shard_args jax_use_emit_pipeline_primitive
jax_use_hlo_logistic_lowering jax_use_rgv3 jax_use_simplified_jaxpr_constants
"""
_ON = """
jax2tf_default_native_serialization jax_allow_f16_reductions jax_auto_pcast jax_check_proxy_envs
jax_compiler_enable_remat_pass jax_enable_preemption_service
jax_include_debug_info_in_dumps jax_include_full_tracebacks_in_locations jax_mutable_array_checks
jax_pallas_use_mosaic_gpu jax_pprint_use_color jax_ragged_dot_use_ragged_dot_instruction
jax_sort_devices_by_process_index jax_use_direct_linearize jax_use_shardy_partitioner
"""
_EMPTY = """
jax_backend_target jax_cross_host_transfer_socket_address jax_cross_host_transport_addresses
jax_debug_log_modules jax_dump_ir_to jax_mock_gpu_topology jax_mtls_ca_file jax_mtls_cert_file
jax_mtls_key_file jax_mtls_peer_uri_prefix jax_xla_backend
"""
_NONE = """
jax_array_garbage_collection_guard jax_cross_host_transfer_timeout_seconds
jax_cross_host_transfer_transfer_size jax_hlo_source_file_canonicalization_regex
jax_pallas_auto_assign_collective_ids_limit jax_pjrt_client_create_options jax_source_url_schema
jax_transfer_guard jax_transfer_guard_device_to_device jax_transfer_guard_device_to_host
jax_transfer_guard_host_to_device
"""
FLAGS: dict[str, Any] = {
    **dict.fromkeys(_OFF.split(), False),
    **dict.fromkeys(_ON.split(), True),
    **dict.fromkeys(_EMPTY.split(), ""),
    **dict.fromkeys(_NONE.split()),
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2000000000,
    "jax_compilation_cache_max_size": -1,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_dump_ir_modes": "stablehlo",
    "jax_embedded_constants_max_bytes": 32,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_explicit_x64_dtypes": "warn",
    "jax_export_calling_convention_version": 10,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_oneapi_visible_devices": "all",
    "jax_optimization_level": "UNKNOWN",
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_rocm_visible_devices": "all",
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts_timeout_ms": 1200000,
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_magma": "auto",
    "jax_xla_profile_version": 0,
    "mock_num_gpu_processes": 0,
}

# Variables of the environment that belong to no option and no flag. docs/options.md has their rows.
_VARIABLES = """
WEFT_AS_JAX WEFT_BUILD WEFT_CACHE_DIR WEFT_CACHE_MAX_BYTES WEFT_COORDINATOR_ADDRESS
WEFT_COORDINATOR_BIND_ADDRESS WEFT_COORDINATOR_PORT WEFT_COORDINATOR_SECRET
WEFT_COORDINATOR_SECRET_FILE WEFT_KERNELS WEFT_LOCAL_DEVICE_IDS WEFT_NUM_PROCESSES WEFT_PROCESS_ID
"""
VARIABLES = frozenset(_VARIABLES.split())
